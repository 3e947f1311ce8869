// A list of any length: pages are asked for where one looks, and only the rows one sees are in the document.
import { Component, type ComponentChildren, type JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useKeys } from "./keys";
import { version } from "./live";
import type { PageTypes, Query } from "./pages";
import { change, route } from "./router";
import { queryText, type PageError } from "./source";
import { Copy, count, csv, markdown, useSource, type Column } from "./ui";

type Name = "samples" | "matrix";
type RowOf<Of extends Name> = PageTypes[Of]["rows"][number];

const PAGE = 200;
const MOST_PAGES = 60; // kept
const AT_ONCE = 2; // requests; a page that was scrolled past before its turn is never asked for
const AGAIN_MS = 1000; // while the index is being made

export class List<Of extends Name> {
  head?: PageTypes[Of]; // the newest page: totals and what one can filter by
  error?: PageError;
  private pages = new Map<number, RowOf<Of>[]>();
  private wanted: number[] = [0];
  private busy = new Set<number>();
  private timer?: ReturnType<typeof setTimeout>;
  private closed = false;

  constructor(
    private name: Of,
    private query: Query,
    private changed: () => void,
  ) {}

  row(index: number): RowOf<Of> | undefined {
    return this.pages.get(Math.floor(index / PAGE))?.[index % PAGE];
  }

  want(first: number, last: number): void {
    const pages = [];
    for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page++) pages.push(page);
    this.wanted = pages;
    this.load();
  }

  again(): void {
    this.error = undefined;
    this.pages.clear();
    this.load();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
  }

  private load(): void {
    for (const page of this.wanted)
      if (!this.closed && !this.error && this.busy.size < AT_ONCE && !this.busy.has(page) && !this.pages.has(page)) void this.loadPage(page);
  }

  private async loadPage(page: number): Promise<void> {
    this.busy.add(page);
    try {
      const value = await useSource().page(this.name, { ...this.query, offset: page * PAGE, limit: PAGE });
      if (this.closed) return;
      this.keep(page, value);
    } catch (error) {
      this.error = error as PageError;
    }
    this.busy.delete(page);
    if (this.closed) return;
    this.changed();
    this.load();
  }

  private keep(page: number, value: PageTypes[Of]): void {
    this.head = value;
    this.pages.set(page, value.rows);
    if (this.pages.size > MOST_PAGES) {
      const far = [...this.pages.keys()].find((each) => !this.wanted.includes(each));
      if (far !== undefined) this.pages.delete(far);
    }
    clearTimeout(this.timer);
    if (value.indexed !== null) this.timer = setTimeout(() => this.renew(), AGAIN_MS);
  }

  // The rows that are shown stay until the new ones are there.
  renew(): void {
    if (!this.head) return;
    for (const page of [...this.pages.keys()]) if (!this.wanted.includes(page)) this.pages.delete(page);
    for (const page of this.wanted) if (!this.busy.has(page)) void this.loadPage(page);
  }
}

export function useList<Of extends Name>(name: Of, query: Query): { list: List<Of>; head?: PageTypes[Of] } {
  const [, redraw] = useState(0);
  const head = useRef<PageTypes[Of] | undefined>(undefined);
  const list = useMemo(() => new List(name, query, () => redraw((before) => before + 1)), [name, queryText(query)]);
  useEffect(() => {
    list.want(0, 0);
    return () => list.close();
  }, [list]);
  useEffect(() => list.renew(), [version.value]);
  head.current = list.head ?? head.current;
  return { list, head: head.current };
}

const MOST_COPIED = 500;

export function CopyRows<Of extends Name>({ name, query, columns }: { name: Of; query: Query; columns: (page: PageTypes[Of]) => Column<RowOf<Of>>[] }): JSX.Element {
  const rows = async (write: (columns: Column<RowOf<Of>>[], rows: RowOf<Of>[]) => string): Promise<string> => {
    const page = await useSource().page(name, { ...query, offset: 0, limit: MOST_COPIED });
    return write(columns(page), page.rows);
  };
  return (
    <span class="actions" title={`at most ${MOST_COPIED} rows are copied`}>
      <Copy name="Markdown" text={() => rows(markdown)} />
      <Copy name="CSV" text={() => rows(csv)} />
    </span>
  );
}

const TALLEST = 8_000_000; // pixels; browsers stop laying out at 16 to 33 million
const BEYOND = 8; // rows above and below what one sees

interface Place {
  top: number; // of what one sees, in pixels of the whole list
  scroll: number; // of the element
  view: number; // height of what one sees
}

export interface RowsProps<Row> {
  name: string;
  list: { row: (index: number) => Row | undefined; want: (first: number, last: number) => void };
  total: number;
  height: number; // of a row
  columns: ComponentChildren[];
  cells: (row: Row, index: number) => ComponentChildren;
  open: (row: Row, index: number) => void;
  class: string;
  style: Record<`--${string}`, string | number>;
}

export function Rows<Row>(props: RowsProps<Row>): JSX.Element {
  const { list, total, height } = props;
  const element = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(() => Number(route.value.query.get("at") ?? 0));
  const { place, show } = usePlace(element, total * height, active * height);
  const first = Math.max(0, Math.floor(place.top / height) - BEYOND);
  const last = Math.min(total - 1, Math.ceil((place.top + place.view) / height) + BEYOND);
  useEffect(() => list.want(first, Math.max(first, last)), [list, first, last]);
  const remember = useRef<ReturnType<typeof setTimeout>>(undefined);
  // The first key takes one to the row where one is.
  const move = (step: number): void => {
    const isInside = element.current?.contains(document.activeElement) && document.activeElement !== element.current;
    const next = Math.max(0, Math.min(total - 1, active + (isInside ? step : 0)));
    setActive(next);
    show(next * height, height);
    requestAnimationFrame(() => element.current?.querySelector<HTMLElement>(`[aria-rowindex="${next + 2}"]`)?.focus({ preventScroll: true }));
    clearTimeout(remember.current);
    remember.current = setTimeout(() => change({ at: next || undefined }, { replace: true }), 300);
  };
  useEffect(() => () => clearTimeout(remember.current), []);
  const open = (index: number): void => {
    clearTimeout(remember.current);
    const row = list.row(index);
    if (row === undefined) return;
    change({ at: index || undefined }, { replace: true }); // where the back button returns to
    props.open(row, index);
  };
  useKeys({
    j: { about: "next row", run: () => move(1) },
    k: { about: "previous row", run: () => move(-1) },
    ArrowDown: { about: "next row", run: () => move(1) },
    ArrowUp: { about: "previous row", run: () => move(-1) },
  });
  const scale = Math.min(total * height, TALLEST);
  const rows = [];
  for (let index = first; index <= last; index++) rows.push(index);
  return (
    <div class={`rows ${props.class}`} style={props.style} role="table" aria-label={props.name} aria-rowcount={total + 1} tabIndex={0} ref={element}>
      <div role="rowgroup" class="head">
        <div role="row" class="row" aria-rowindex={1}>
          {props.columns}
        </div>
      </div>
      <div role="rowgroup" class="all" style={{ height: `${scale}px`, "--row": `${height}px` }}>
        <div role="presentation" class="shown" style={{ transform: `translateY(${place.scroll + first * height - place.top}px)` }}>
          {rows.map((index) => (
            <Line
              key={index}
              row={list.row(index)}
              index={index}
              active={index === active}
              cells={props.cells}
              onActive={() => setActive(index)}
              onOpen={() => open(index)}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

interface LineProps<Row> {
  row: Row | undefined;
  index: number;
  active: boolean;
  cells: (row: Row, index: number) => ComponentChildren;
  onActive: () => void;
  onOpen: () => void;
}

// Drawn again only if its row is another: scrolling draws what is new.
class Line<Row> extends Component<LineProps<Row>> {
  override shouldComponentUpdate(next: LineProps<Row>): boolean {
    return next.row !== this.props.row || next.active !== this.props.active;
  }

  override render(): JSX.Element {
    const { row, index, active, cells } = this.props;
    return (
      <div
        role="row"
        class="row"
        aria-rowindex={index + 2}
        tabIndex={active ? 0 : -1}
        onFocus={() => this.props.onActive()}
        onKeyDown={(event) => event.key === "Enter" && event.target === event.currentTarget && this.props.onOpen()}
        onClick={(event) => !(event.target as Element).closest("a") && this.props.onOpen()}
      >
        {row === undefined ? <div role="cell">… {count(index + 1)}</div> : cells(row, index)}
      </div>
    );
  }
}

// Where one is. A list that is taller than a browser can lay out is scrolled to scale by large steps (the thumb of the
// bar), and pixel by pixel by small ones; when it rests, the bar is put where it belongs.
function usePlace(element: { current: HTMLDivElement | null }, full: number, start: number): { place: Place; show: (top: number, height: number) => void } {
  const [, redraw] = useState(0);
  const place = useRef<Place>({ top: start, scroll: start, view: 600 }).current;
  const tall = Math.min(full, TALLEST);
  const ratio = (): number => (tall > place.view ? (full - place.view) / (tall - place.view) : 1);
  const put = (top: number): void => {
    place.top = Math.max(0, Math.min(top, full - place.view));
    place.scroll = place.top / ratio();
    if (element.current) element.current.scrollTop = place.scroll;
    if (element.current) place.scroll = element.current.scrollTop;
    redraw((before) => before + 1);
  };
  useLayoutEffect(() => {
    const box = element.current!;
    let frame = 0;
    let rest: ReturnType<typeof setTimeout>;
    const scrolled = (): void => {
      frame = 0;
      const [before, now] = [place.scroll, box.scrollTop];
      if (now === before) return;
      const top = Math.abs(now - before) > place.view ? now * ratio() : place.top + now - before;
      place.top = ratio() === 1 ? now : Math.max(0, Math.min(top, full - place.view));
      place.scroll = now;
      redraw((count) => count + 1);
      clearTimeout(rest);
      if (ratio() !== 1) rest = setTimeout(() => put(place.top), 200);
    };
    const onScroll = (): void => void (frame ||= requestAnimationFrame(scrolled));
    const resized = new ResizeObserver(() => {
      place.view = Math.max(100, box.clientHeight - (box.querySelector<HTMLElement>(".head")?.offsetHeight ?? 0));
      put(place.top);
    });
    resized.observe(box);
    box.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      resized.disconnect();
      cancelAnimationFrame(frame);
      clearTimeout(rest);
      box.removeEventListener("scroll", onScroll);
    };
  }, [full]);
  const show = (top: number, height: number): void => {
    if (top < place.top) put(top);
    else if (top + height > place.top + place.view) put(top + height - place.view);
  };
  return { place, show };
}
