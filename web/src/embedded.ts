// The pages inside a report: gzip in base64, one element each, decoded when they are asked for. Pages of samples are made
// here of the rows that the report carries, chunk by chunk: what is decoded can be looked at before all of it is.
import { Carried } from "./carried";
import type { CarriedRow, PageName, PageTypes, Query, Report, Sample } from "./pages";
import { PageError, queryText, type Source } from "./source";
import { list, pause, text } from "./view";

const PATIENCE_MS = 300; // before a list is made of what is decoded

export class EmbeddedSource implements Source {
  live = false;
  private decoded = new Map<string, Promise<string>>();
  private elements = new Map<string, HTMLElement>();
  private rows: CarriedRow[] = [];
  private chunks = 0; // decoded
  private reading?: Promise<void>;
  private carried?: Carried; // of the rows decoded so far

  constructor(pages: HTMLElement) {
    for (const element of pages.querySelectorAll<HTMLElement>("script[data-page]")) this.elements.set(element.dataset.page!, element);
  }

  async page<Name extends PageName>(name: Name, query: Query = {}): Promise<PageTypes[Name]> {
    const key = `${name}?${queryText(query)}`;
    if (this.elements.has(key) || !this.elements.has("report")) return answered(JSON.parse(await this.text(key)));
    const make: { [Of in PageName]?: () => Promise<PageTypes[Of]> } = {
      samples: async () => (await this.soFar()).samples(query),
      matrix: async () => (await this.soFar()).matrix(query),
      flips: async () => (await this.soFar(true)).flips(query),
      sample: () => this.sample(query),
      report: () => this.json<Report>("report"),
    };
    return (await (make[name]?.() ?? this.text(key))) as PageTypes[Name];
  }

  asset(name: string): Promise<string> {
    return this.text(name);
  }

  async save(): Promise<never> {
    throw new PageError("a report cannot be labelled", "open its folder with `assay view`");
  }

  private async json<Value>(key: string): Promise<Value> {
    return JSON.parse(await this.text(key));
  }

  // Details are large: only the text of the page that is shown is decoded, and not kept.
  private async sample(query: Query): Promise<Sample> {
    const item = text(query.item);
    const { details } = await this.json<Report>("report");
    if (!Object.hasOwn(details, item)) throw new PageError(`the report does not carry the item '${item}'`, "make one with more samples: `assay report --samples all`");
    const element = this.elements.get(`details/${details[item]}`);
    const pages = JSON.parse(await inflate(element?.textContent ?? "")) as Record<string, Sample>;
    const page = pages[item]!;
    const wanted = list(query.experiment);
    const experiments = page.experiments.filter((trace) => wanted.includes(trace.experiment));
    return experiments.length ? { ...page, experiments } : page;
  }

  private async soFar(all = false): Promise<Carried> {
    const report = await this.json<Report>("report");
    this.reading ??= this.read(report);
    await Promise.race([this.reading, ...(all ? [] : [new Promise((done) => setTimeout(done, PATIENCE_MS))])]);
    while (!this.chunks && report.chunks) await pause();
    const share = this.chunks >= report.chunks ? null : this.chunks / report.chunks;
    this.carried ??= new Carried(this.rows.slice(), report, share);
    return this.carried;
  }

  private async read(report: Report): Promise<void> {
    for (let chunk = 0; chunk < report.chunks; chunk++) {
      const rows: CarriedRow[] = JSON.parse(await inflate(this.elements.get(`rows/${chunk}`)?.textContent ?? ""));
      for (const row of rows) this.rows.push(row);
      this.chunks = chunk + 1;
      this.carried = undefined;
      await pause();
    }
  }

  private text(key: string): Promise<string> {
    let decoded = this.decoded.get(key);
    if (!decoded) {
      const element = this.elements.get(key);
      if (!element) return Promise.reject(new PageError("this is not part of the report", "open its folder with `assay view`"));
      decoded = inflate(element.textContent ?? "");
      this.decoded.set(key, decoded);
    }
    return decoded;
  }
}

// What could not be made is carried as its problem.
function answered<Value>(value: Value & { problem?: { what: string; fix: string } }): Value {
  if (value.problem) throw new PageError(value.problem.what, value.problem.fix);
  return value;
}

async function inflate(base64: string): Promise<string> {
  const binary = atob(base64.trim());
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index++) bytes[index] = binary.charCodeAt(index);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}
