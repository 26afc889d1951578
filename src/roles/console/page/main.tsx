// The page's entry: draws the shell into its place.

import { render } from "preact";
import { App } from "./app.tsx";

const place = document.getElementById("app");
if (place !== null) render(<App />, place);
