// Where pages of data come from: a server (`assay view`) or the file itself (`assay report`).
import type { GivenLabel, PageName, PageTypes, Query } from "./pages";

export interface Source {
  live: boolean; // whether there is a server, which follows runs and stores labels
  page<Name extends PageName>(name: Name, query?: Query): Promise<PageTypes[Name]>;
  asset(name: "rich.js"): Promise<string>;
  save(label: GivenLabel): Promise<{ judge: number | null }>; // a person's label; what the judge said comes back
}

export class PageError extends Error {
  fix: string;

  constructor(what: string, fix = "") {
    super(what);
    this.fix = fix;
  }
}

// The same query has the same text on both sides: names in order, lists in theirs, nothing that is not set.
export function queryText(query: Query = {}): string {
  const parts: string[] = [];
  for (const name of Object.keys(query).sort()) {
    const value = query[name];
    for (const entry of Array.isArray(value) ? value : [value]) {
      if (entry !== undefined && entry !== "" && entry !== false)
        parts.push(`${encodeURIComponent(name)}=${encodeURIComponent(entry === true ? "1" : String(entry))}`);
    }
  }
  return parts.join("&");
}

class HttpSource implements Source {
  live = true;

  async page<Name extends PageName>(name: Name, query?: Query): Promise<PageTypes[Name]> {
    return (await this.get(`data/${name}?${queryText(query)}`)).json();
  }

  async asset(name: string): Promise<string> {
    return (await this.get(`assets/${name}`)).text();
  }

  async save(label: GivenLabel): Promise<{ judge: number | null }> {
    const headers = { "content-type": "application/json" };
    return (await this.get("labels", { method: "POST", body: JSON.stringify(label), headers })).json();
  }

  private async get(path: string, options?: RequestInit): Promise<Response> {
    let answer: Response;
    try {
      answer = await fetch(path, options);
    } catch {
      throw new PageError("the server does not answer", "start `assay view` again");
    }
    if (answer.ok) return answer;
    const problem = await answer.json().catch(() => ({ what: `the server answered ${answer.status}` }));
    throw new PageError([problem.what, problem.where].filter(Boolean).join("\n"), problem.fix);
  }
}

export async function openSource(): Promise<Source> {
  const pages = document.getElementById("pages");
  if (!pages) return new HttpSource();
  const { EmbeddedSource } = await import("./embedded");
  return new EmbeddedSource(pages);
}
