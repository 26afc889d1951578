// The console's shell: log-in, navigation, banners, and the page that the address names. Pages are given what
// the events have told and a way to ask; nothing here decides about a call.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ApprovalsPage } from "./approvals_page.tsx";
import { askOf } from "./ask.ts";
import { AuditPage } from "./audit_page.tsx";
import { Banners } from "./banners.tsx";
import { CallsPage } from "./calls_page.tsx";
import { Gate } from "./gate.tsx";
import { GrantsPage } from "./grants_page.tsx";
import { KeyHelp } from "./key_help.tsx";
import { useKeys } from "./keys.ts";
import { Feed, type FeedEffects, NOTHING_YET } from "./live.ts";
import { LoadPage } from "./load_page.tsx";
import { forgetKey, keptKey, logIn, logOut, takeToken } from "./login.ts";
import type { Live, PageProps } from "./page.ts";
import { Button } from "./parts.tsx";
import { PolicyPage } from "./policy_page.tsx";
import { addressOf, type Route, routeOf } from "./route.ts";
import { SessionsPage } from "./sessions_page.tsx";
import { ToastRegion, useToasts } from "./toasts.tsx";

const PAGES = [
  { name: "questions", title: "Questions", Page: ApprovalsPage },
  { name: "calls", title: "Calls", Page: CallsPage },
  { name: "sessions", title: "Sessions", Page: SessionsPage },
  { name: "grants", title: "Grants", Page: GrantsPage },
  { name: "policy", title: "Policy", Page: PolicyPage },
  { name: "audit", title: "Audit", Page: AuditPage },
  { name: "load", title: "Load", Page: LoadPage },
] as const;

type Entry =
  | { readonly state: "in"; readonly key: string }
  | { readonly state: "out"; readonly why: string | undefined }
  | { readonly state: "entering" };

export function App() {
  const [entry, setEntry] = useState<Entry>(() => {
    const key = keptKey();
    return key === undefined ? { state: "out", why: undefined } : { state: "in", key };
  });
  useEffect(() => {
    const enter = () => {
      const token = takeToken();
      if (token === undefined) return;
      setEntry({ state: "entering" });
      void logIn(token).then((told) =>
        setEntry("key" in told ? { state: "in", key: told.key } : { state: "out", why: told.why }),
      );
    };
    enter();
    addEventListener("hashchange", enter); // a link that is pasted into an open page changes nothing else
    return () => removeEventListener("hashchange", enter);
  }, []);
  const leave = useCallback((why: string | undefined) => {
    forgetKey();
    setEntry({ state: "out", why });
  }, []);
  if (entry.state === "in") return <Inside key={entry.key} loginKey={entry.key} leave={leave} />;
  return <Gate busy={entry.state === "entering"} why={entry.state === "out" ? entry.why : undefined} />;
}

const ENDED = "This log-in has ended.";

const REAL: FeedEffects = {
  fetch: (path, init) => fetch(path, init),
  after: (ms, then) => {
    const timer = setTimeout(then, ms);
    return () => clearTimeout(timer);
  },
  random: Math.random,
};

interface InsideProps {
  readonly loginKey: string;
  readonly leave: (why: string | undefined) => void;
}

function Inside({ loginKey, leave }: InsideProps) {
  const live = useLive(loginKey, leave);
  const ask = useMemo(() => askOf({ key: loginKey, loggedOut: () => leave(ENDED) }), [loginKey, leave]);
  const route = useRoute();
  const { shown, say } = useToasts();
  const [help, setHelp] = useState(false);
  const known = PAGES.find(({ name }) => name === route.page) ?? PAGES[0];
  const waiting = live.questions?.total ?? live.questions?.approvals.length ?? 0;
  usePageTitle(known.title, waiting);
  useKeys({
    "?": () => setHelp(true),
    "/": () => document.querySelector<HTMLElement>(".main input")?.focus(),
    ...Object.fromEntries(PAGES.map(({ name }, i) => [String(i + 1), () => go(name)])),
  });
  const out = () => {
    void logOut(loginKey);
    leave(undefined);
  };
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={skip}>
        Skip to the content
      </button>
      <Side live={live} current={known.name} waiting={waiting} onHelp={() => setHelp(true)} onOut={out} />
      <Banners live={live} />
      <main class="main" id="main" tabIndex={-1}>
        <known.Page live={live} ask={ask} words={route.words} go={go} say={say} />
      </main>
      <ToastRegion shown={shown} />
      {help ? <KeyHelp onClose={() => setHelp(false)} /> : null}
    </div>
  );
}

const go: PageProps["go"] = (page, ...words) => {
  location.hash = addressOf(page, ...words);
};

/** No link: the address is the page's own. */
function skip(): void {
  document.getElementById("main")?.focus();
}

function useLive(key: string, leave: InsideProps["leave"]): Live {
  const [live, setLive] = useState<Live>(NOTHING_YET);
  useEffect(() => {
    const feed = new Feed(key, REAL, (now) => {
      if (now.connection === "logged_out") leave(ENDED);
      else setLive(now);
    });
    void feed.run();
    return () => feed.stop();
  }, [key, leave]);
  return live;
}

/** Another page begins at its top; other words of the same one do not move it. */
function useRoute(): Route {
  const [route, setRoute] = useState(() => routeOf(location.hash));
  const page = useRef(route.page);
  useEffect(() => {
    const changed = () => setRoute(routeOf(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  useEffect(() => {
    if (page.current === route.page) return;
    page.current = route.page;
    scrollTo(0, 0);
    document.getElementById("main")?.focus({ preventScroll: true });
  }, [route.page]);
  return route;
}

function usePageTitle(title: string, waiting: number): void {
  useEffect(() => {
    document.title = `${waiting === 0 ? "" : `(${waiting}) `}${title} · callgate`;
  }, [title, waiting]);
}

interface SideProps {
  readonly live: Live;
  readonly current: string;
  readonly waiting: number;
  readonly onHelp: () => void;
  readonly onOut: () => void;
}

function Side({ live, current, waiting, onHelp, onOut }: SideProps) {
  return (
    <header class="side">
      <div class="brand">
        <svg viewBox="0 0 24 24" aria-hidden="true">
          <path
            d="M5 20V9a7 7 0 0 1 14 0v11M12 3v17M5 12h14"
            fill="none"
            stroke="currentColor"
            stroke-width="2.2"
          />
        </svg>
        callgate
      </div>
      <nav class="nav" aria-label="Pages">
        {PAGES.map(({ name, title }) => (
          <a key={name} href={addressOf(name)} aria-current={name === current ? "page" : undefined}>
            {title}
            {name === "questions" && waiting > 0 ? <Waiting count={waiting} /> : null}
          </a>
        ))}
      </nav>
      <div class="side-foot">
        <ConnectionState live={live} />
        <div class="buttons">
          <Button kind="quiet" label="Keys" onClick={onHelp}>
            ?
          </Button>
          <Button kind="quiet" onClick={onOut}>
            Log out
          </Button>
        </div>
      </div>
    </header>
  );
}

function Waiting({ count }: { count: number }) {
  return (
    <span class="count">
      {count.toLocaleString("en-US")}
      <span class="unseen"> waiting</span>
    </span>
  );
}

function ConnectionState({ live: { connection, broker } }: { live: Live }) {
  if (connection === "connecting") return <span class="state">Connecting</span>;
  const isGood = connection === "open" && broker.connected;
  const words = connection !== "open" ? "Console lost" : broker.connected ? "Live" : "Broker lost";
  return <span class={`state ${isGood ? "state-good" : "state-bad"}`}>{words}</span>;
}
