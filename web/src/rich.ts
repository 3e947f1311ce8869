// Loaded when a text is to be rendered: Markdown without HTML, LaTeX as MathML, both made harmless by DOMPurify.
import createDOMPurify from "dompurify";
import MarkdownIt, { type StateBlock, type StateInline } from "markdown-it";
import temml from "temml";

const TAGS =
  "p br hr h1 h2 h3 h4 h5 h6 strong em s code pre blockquote ul ol li table thead tbody tr th td a img button span " +
  "math mrow mi mn mo ms mtext mspace mfrac msqrt mroot msub msup msubsup munder mover munderover mmultiscripts mprescripts mtable mtr mtd mstyle mpadded mphantom menclose merror";
const ADDRESSES = ["href", "src", "data-src"];
const ATTRIBUTES = (
  "alt title start class display mathvariant stretchy fence separator form lspace rspace minsize maxsize movablelimits symmetric accent accentunder " +
  "linethickness columnalign columnspacing rowspacing rowalign columnlines rowlines frame width height depth voffset scriptlevel displaystyle notation"
).split(" ");

const MOST_OF_FORMULA = 10_000;

const markdown = new MarkdownIt({ html: false, linkify: false, breaks: true });

// Brackets of formulas, and how they are shown. A single $ must touch its formula, so that prices stay prices.
const FENCES: [open: string, close: string, display: boolean][] = [
  ["$$", "$$", true],
  ["\\[", "\\]", true],
  ["\\(", "\\)", false],
  ["$", "$", false],
];

function formulaInline(state: StateInline, silent: boolean): boolean {
  const fence = FENCES.find(([open]) => state.src.startsWith(open, state.pos));
  if (!fence) return false;
  const [open, close, display] = fence;
  const start = state.pos + open.length;
  const end = state.src.indexOf(close, start);
  if (end <= start) return false;
  const formula = state.src.slice(start, end);
  if (open === "$" && (/^\s|\s$|\n\s*\n/.test(formula) || /\d/.test(state.src[end + 1] ?? ""))) return false;
  if (!silent) addFormula(state, formula, display);
  state.pos = end + close.length;
  return true;
}

function formulaBlock(state: StateBlock, startLine: number, endLine: number, silent: boolean): boolean {
  const start = state.bMarks[startLine]! + state.tShift[startLine]!;
  const fence = FENCES.slice(0, 2).find(([open]) => state.src.startsWith(open, start));
  if (!fence) return false;
  const [open, close] = fence;
  const end = state.src.indexOf(close, start + open.length);
  if (end < 0 || end > state.eMarks[endLine - 1]!) return false;
  let line = startLine;
  while (state.eMarks[line]! < end + close.length) line++;
  if (state.src.slice(end + close.length, state.eMarks[line]).trim()) return false;
  if (!silent) addFormula(state, state.src.slice(start + open.length, end), true);
  state.line = line + 1;
  return true;
}

function addFormula(state: StateInline | StateBlock, formula: string, display: boolean): void {
  const token = state.push("formula", "", 0);
  token.content = formula;
  token.meta = { display };
}

markdown.inline.ruler.before("escape", "formula", formulaInline);
markdown.block.ruler.before("fence", "formula", formulaBlock, { alt: ["paragraph"] });
markdown.renderer.rules.formula = (tokens, index) => {
  const { content, meta } = tokens[index]!;
  try {
    if (content.length > MOST_OF_FORMULA) throw new Error("too long");
    return temml.renderToString(content, { displayMode: meta?.display === true, throwOnError: true, maxExpand: 200, maxSize: [20, 50] });
  } catch {
    return `<code title="not LaTeX">${markdown.utils.escapeHtml(content)}</code>`;
  }
};
markdown.renderer.rules.image = (tokens, index) => {
  const token = tokens[index]!;
  const [address, alt] = [markdown.utils.escapeHtml(String(token.attrGet("src") ?? "")), markdown.utils.escapeHtml(token.content)];
  return address.startsWith("data:") ? `<img src="${address}" alt="${alt}">` : `<button data-src="${address}">${alt}</button>`;
};

const purify = createDOMPurify(window);

function render(text: string, load: boolean): DocumentFragment {
  const fragment = purify.sanitize(markdown.render(text), {
    ALLOWED_TAGS: TAGS.split(" "),
    ALLOWED_ATTR: [...ADDRESSES, ...ATTRIBUTES],
    ADD_URI_SAFE_ATTR: ATTRIBUTES, // only addresses must look like addresses
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|data:image\/(?:png|jpeg|gif|webp|avif)[;,])/i,
    RETURN_DOM_FRAGMENT: true,
  });
  for (const link of fragment.querySelectorAll("a")) prepareLink(link);
  for (const button of fragment.querySelectorAll<HTMLButtonElement>("button")) prepareImage(button, load);
  for (const element of fragment.querySelectorAll(".tml-display, table")) element.setAttribute("tabindex", "0");
  return fragment;
}

// A link's words can say anything: its address stands beside them.
function prepareLink(link: HTMLAnchorElement): void {
  const address = link.getAttribute("href");
  if (!address) return;
  link.target = "_blank";
  link.rel = "noopener noreferrer";
  if (link.textContent !== address) link.append(` (${address})`);
}

function prepareImage(button: HTMLButtonElement, load: boolean): void {
  const address = button.dataset.src ?? "";
  const words = `${button.textContent ? `${button.textContent}: ` : ""}${address}`;
  if (!load || !/^https?:/i.test(address)) {
    const code = document.createElement("code");
    code.textContent = `picture ${words}`;
    button.replaceWith(code);
    return;
  }
  const alt = button.textContent ?? "";
  button.type = "button";
  button.textContent = `load the picture ${words}`;
  button.onclick = () => {
    const image = document.createElement("img");
    image.referrerPolicy = "no-referrer";
    image.alt = alt;
    image.src = address;
    button.replaceWith(image);
  };
}

(window as unknown as { assayRich: typeof render }).assayRich = render;
