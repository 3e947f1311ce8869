import { Component, render, type ComponentChildren, type FunctionComponent } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { KeysDialog, keysShown, press, useKeys, type Keys } from "./keys";
import { follow, listed, lost } from "./live";
import { chosen, go, href, route } from "./router";
import { Chooser, ThemeButton, restoreTheme } from "./shell";
import { openSource } from "./source";
import { oneLine } from "./line";
import { setSource, useSource } from "./ui";
import { Compare } from "./views/compare";
import { Experiments } from "./views/experiments";
import { Judges } from "./views/judges";
import { Leaderboard } from "./views/leaderboard";
import { Matrix } from "./views/matrix";
import { Plots } from "./views/plots";
import { Report } from "./views/report";
import { Review } from "./views/review";
import { Sample } from "./views/sample";
import { Samples } from "./views/samples";

interface View {
  title: string;
  view: FunctionComponent;
  key?: string; // after `g`; views without one are reached from others
  live?: boolean; // only with a server; false: only in a report
}

// The views, in the order of the navigation.
const VIEWS: Record<string, View> = {
  report: { title: "Report", view: Report, key: "o", live: false },
  experiments: { title: "Experiments", view: Experiments, key: "e" },
  leaderboard: { title: "Leaderboard", view: Leaderboard, key: "l" },
  samples: { title: "Samples", view: Samples, key: "s" },
  matrix: { title: "Matrix", view: Matrix, key: "m" },
  compare: { title: "Compare", view: Compare, key: "c" },
  plots: { title: "Plots", view: Plots, key: "p" },
  judges: { title: "Judges", view: Judges, key: "j" },
  review: { title: "Review", view: Review, key: "r", live: true },
  sample: { title: "Sample", view: Sample },
};

const TITLE = document.title;

// A view that breaks is shown as broken; the others stay usable.
class Boundary extends Component<{ children: ComponentChildren }, { error?: Error }> {
  override state: { error?: Error } = {};

  static override getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <div class="problem box" role="alert">
        <p>This view failed: {oneLine(error.message || String(error), 500)}</p>
        <p class="quiet">Reload the page; if it stays, this is a fault of Assay. The rest of the viewer works.</p>
        <button onClick={() => this.setState({ error: undefined })}>Try again</button>
      </div>
    );
  }
}

function shellKeys(names: string[]): Keys {
  const keys: Keys = {
    "?": { about: "show the keys", run: () => (keysShown.value = true) },
    "/": { about: "go to the search", run: () => document.querySelector<HTMLElement>("main input[type=search]")?.focus() },
  };
  for (const name of names) {
    const { key, title } = VIEWS[name]!;
    if (key) keys[`g ${key}`] = { about: `go to ${title}`, run: () => go(name, { experiment: chosen() }) };
  }
  return keys;
}

function App() {
  const { view: name } = route.value;
  const { live } = useSource();
  const main = useRef<HTMLElement>(null);
  const names = Object.keys(VIEWS).filter((each) => (VIEWS[each]!.live ?? live) === live);
  const view = Object.hasOwn(VIEWS, name) ? VIEWS[name] : undefined;
  const experiment = chosen();
  useKeys(shellKeys(names));
  useEffect(() => {
    document.title = [view?.title ?? "Not here", ...experiment.slice(0, 3).map((each) => oneLine(each)), TITLE].join(" · ");
  }, [name, experiment.join()]);
  useEffect(() => {
    scrollTo(0, 0);
    document.querySelector("nav [aria-current=page]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [name]);
  const skip = (event: Event) => {
    event.preventDefault();
    main.current?.focus();
  };
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <header>
        <a class="name" href={href("", { experiment })}>
          Assay
        </a>
        <nav aria-label="views">
          {names
            .filter((each) => VIEWS[each]!.key)
            .map((each) => (
              <a key={each} href={href(each, { experiment })} aria-current={each === name ? "page" : undefined}>
                {VIEWS[each]!.title}
              </a>
            ))}
        </nav>
        <div class="tools">
          {lost.value && (
            <span class="problem" role="status">
              no connection
            </span>
          )}
          <Chooser experiments={listed.value.value?.experiments ?? []} />
          <ThemeButton />
          <button onClick={() => (keysShown.value = true)} aria-label="keys">
            ?
          </button>
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {name !== "report" && <h1 class="hidden">{view?.title ?? "Not here"}</h1>}
        <Boundary key={name}>{view ? <view.view /> : <p class="problem">There is no view “{oneLine(name)}”.</p>}</Boundary>
      </main>
      <KeysDialog />
    </>
  );
}

restoreTheme();
addEventListener("keydown", press);
openSource().then((source) => {
  setSource(source);
  void follow(source);
  const place = document.getElementById("app")!;
  place.replaceChildren();
  render(<App />, place);
});
