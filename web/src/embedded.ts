// The pages inside a report: gzip in base64, one element each, decoded when they are asked for.
import type { PageName, PageTypes, Query } from "./pages";
import { PageError, queryText, type Source } from "./source";

export class EmbeddedSource implements Source {
  live = false;
  private decoded = new Map<string, Promise<string>>();

  constructor(_pages: HTMLElement) {}

  async page<Name extends PageName>(name: Name, query?: Query): Promise<PageTypes[Name]> {
    return JSON.parse(await this.text(`${name}?${queryText(query)}`));
  }

  asset(name: string): Promise<string> {
    return this.text(name);
  }

  async save(): Promise<never> {
    throw new PageError("a report cannot be labelled", "open its folder with `assay view`");
  }

  private text(key: string): Promise<string> {
    let text = this.decoded.get(key);
    if (!text) {
      const element = [...document.querySelectorAll<HTMLElement>("script[data-page]")].find((each) => each.dataset.page === key);
      if (!element) return Promise.reject(new PageError("this is not part of the report", "open its folder with `assay view`"));
      text = inflate(element.textContent ?? "");
      this.decoded.set(key, text);
    }
    return text;
  }
}

async function inflate(base64: string): Promise<string> {
  const bytes = Uint8Array.from(atob(base64.trim()), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}
