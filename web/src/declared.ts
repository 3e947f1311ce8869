// The columns of samples as they are declared, which are the same for a server and in a report.
import type { Condition, Declared } from "./pages";

export const DECLARED = JSON.parse(document.getElementById("columns")!.textContent!) as Declared;

// A filter of a list: several conditions of a parameter are one choice.
export interface Filter extends Condition {
  options: { value: string; text: string }[]; // of which one is chosen
}

const word = (text: string): string => text.replaceAll("_", " ");

// What one chooses of: the words of a column, or a word of each of the columns that share a parameter.
function filterOf(name: string): Filter {
  const own = DECLARED.conditions.filter((each) => each.name === name);
  const [first] = own as [Condition];
  if (own.length === 1) return { ...first, options: ["", ...first.words].map((value) => ({ value, text: word(value) || "any" })) };
  const options = own.flatMap(({ words, title }) => words.map((value) => ({ value, text: title })));
  return { ...first, title: word(name), options: [{ value: "", text: "all" }, ...options] };
}

export const FILTERS = [...new Set(DECLARED.conditions.map((each) => each.name))].map(filterOf);

export const SORTS = Object.entries(DECLARED.sorts).map(([value, { title }]) => ({ value, text: title }));

// Texts and scores begin with the least; what else there is most of is what one looks for.
export const isLargestFirst = (sort: string): boolean => sort !== "score" && (DECLARED.sorts[sort]?.type ?? "TEXT") !== "TEXT";
