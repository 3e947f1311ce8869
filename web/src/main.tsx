import { render, type FunctionComponent } from "preact";
import { href, route } from "./router";
import { openSource } from "./source";
import { setSource } from "./ui";
import { Compare } from "./views/compare";
import { Experiments } from "./views/experiments";
import { Judges } from "./views/judges";
import { Leaderboard } from "./views/leaderboard";
import { Matrix } from "./views/matrix";
import { Plots } from "./views/plots";
import { Review } from "./views/review";
import { Sample } from "./views/sample";
import { Samples } from "./views/samples";

// The views, in the order of the navigation; those without a title are reached from others.
const VIEWS: Record<string, { title?: string; view: FunctionComponent }> = {
  experiments: { title: "Experiments", view: Experiments },
  leaderboard: { title: "Leaderboard", view: Leaderboard },
  samples: { title: "Samples", view: Samples },
  matrix: { title: "Matrix", view: Matrix },
  compare: { title: "Compare", view: Compare },
  plots: { title: "Plots", view: Plots },
  judges: { title: "Judges", view: Judges },
  review: { title: "Review", view: Review },
  sample: { view: Sample },
};

function App() {
  const { view, query } = route.value;
  const known = VIEWS[view];
  const View = known?.view;
  const experiment = query.getAll("experiment");
  return (
    <>
      <header>
        <a class="name" href="#/">
          Assay
        </a>
        <nav aria-label="views">
          {Object.entries(VIEWS).map(([name, { title }]) =>
            title ? (
              <a href={href(name, { experiment })} aria-current={name === view ? "page" : undefined}>
                {title}
              </a>
            ) : null,
          )}
        </nav>
      </header>
      <main>{View ? <View /> : <p class="problem">There is no view “{view}”.</p>}</main>
    </>
  );
}

openSource().then((source) => {
  setSource(source);
  const place = document.getElementById("app")!;
  place.replaceChildren();
  render(<App />, place);
});
