// Stands for two packages behind markdown-it (see build.mjs), a tenth of rich.js: the browser knows the names of
// characters itself, and bare addresses do not become links.
const field = document.createElement("textarea");

export function decodeHTMLStrict(reference: string): string {
  field.innerHTML = reference; // of the form &name; or &#1234;: its content is text whatever it says
  return field.value;
}

export class LinkifyIt {}
