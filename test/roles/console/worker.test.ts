import { once } from "node:events";
import { createServer } from "node:http";
import { afterEach, expect, it } from "vitest";
import { NEEDED, openBrowser } from "../../console/browser.ts";
import { cleanUp, onCleanUp } from "../../daemon/daemon.ts";
import { describeWith } from "../../needs.ts";
import { ConsoleRig } from "./rig.ts";

afterEach(cleanUp);

const WORKER = `
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(clients.claim()));
self.addEventListener("fetch", (event) => {
  if (event.request.mode === "navigate")
    event.respondWith(new Response("<h1>impostor</h1>", { headers: { "content-type": "text/html" } }));
});`;
const PAGE = `<!doctype html><script>
navigator.serviceWorker.register("/w.js").then(() => navigator.serviceWorker.ready).then(() => { document.title = "left"; });
</script>`;

describeWith(NEEDED, "a console on a port that another program had before", () => {
  it("is rid of the worker that was left in the browser there, once that was asked for anew", async () => {
    const impostor = createServer((request, response) => {
      const isWorker = request.url === "/w.js";
      response.setHeader("Content-Type", isWorker ? "text/javascript" : "text/html");
      response.end(isWorker ? WORKER : PAGE);
    });
    impostor.listen(0, "127.0.0.1");
    await once(impostor, "listening");
    const { port } = impostor.address() as { port: number };
    const browser = await openBrowser();
    onCleanUp(() => browser.close());
    const page = await (await browser.newContext()).newPage();
    await page.goto(`http://127.0.0.1:${port}/`);
    await page.waitForFunction(`document.title === "left"`);
    impostor.closeAllConnections();
    impostor.close();
    await once(impostor, "close");

    await ConsoleRig.start({}, { port });
    await page.goto(`http://127.0.0.1:${port}/`);
    expect(await page.title()).toBe(""); // the impostor's still: a browser looks for a newer worker only after a visit
    await page.evaluate(
      "navigator.serviceWorker.getRegistration().then((left) => left.update()).catch(() => {})",
    );
    await page.waitForFunction(
      "navigator.serviceWorker.getRegistrations().then((left) => left.length === 0)",
    );
    await page.goto(`http://127.0.0.1:${port}/`);
    expect(await page.title()).toBe("fixture");
  });
});
