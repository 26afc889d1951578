import { describe, expect, it } from "vitest";
import {
  noticeIn,
  progressNotice,
  progressPiece,
  resultAfterProgress,
} from "../../../src/roles/mcp/progress.ts";
import { ProgressPieces } from "../../../src/roles/mcp/provide/progress_pieces.ts";
import { type AskedCall, OpenCall } from "../../../src/roles/mcp/serve/open_call.ts";
import { PROGRESS_MS, reportWhile } from "../../../src/roles/mcp/serve/progress_reports.ts";

describe("a result that had progress", () => {
  it("is one JSON object, of which each piece gives its notice again", () => {
    const notices = [
      { progress: 0, total: 100, message: 'a\n"b"' },
      { progress: 50, total: 100 },
    ];
    const pieces = notices.map((notice, index) => progressPiece(notice, index === 0));
    const last = resultAfterProgress('{"content":[],"isError":false}');
    expect(JSON.parse([...pieces, last].join(""))).toEqual({
      progress: notices,
      content: [],
      isError: false,
    });
    expect(pieces.map(noticeIn)).toEqual(notices);
    expect(noticeIn(last)).toBeUndefined();
  });

  it("takes no result, and no part of one, for a notice", () => {
    for (const text of [
      '{"content":[]}',
      ",",
      ',{"progress":"x"}',
      '{"progress":[null',
      `,{"progress":1}${" ".repeat(5000)}`,
    ])
      expect(noticeIn(text)).toBeUndefined();
  });

  it("has no number of a server's that is none, and few of its words", () => {
    for (const progress of [Number.NaN, Number.POSITIVE_INFINITY, "1", null, 1e300])
      expect(progressNotice({ progress })).toBeUndefined();
    const notice = progressNotice({ progress: 1, total: "x", message: "m".repeat(10_000), more: 1 });
    expect(notice).toEqual({ progress: 1, message: "m".repeat(300) });
  });
});

describe("a server that tells of its progress without end", () => {
  it("is heard at first at once, and the less often the longer the call runs", async () => {
    let nowMs = 0;
    const pieces = new ProgressPieces(() => nowMs);
    for (; nowMs < 86_400_000; nowMs += 1000) pieces.take({ progress: nowMs });
    pieces.end();
    expect(await pieces.begun).toBe(true);
    const heard: string[] = [];
    for await (const piece of pieces) heard.push(piece);
    expect(heard.length).toBeGreaterThan(100);
    expect(heard.length).toBeLessThan(500);
    expect(heard.slice(0, 8).map((piece) => noticeIn(piece)?.progress)).toEqual([
      0, 1000, 2000, 3000, 4000, 5000, 6000, 7000,
    ]);
  });

  it("gets no more room than a few pages", async () => {
    let nowMs = 0;
    const pieces = new ProgressPieces(() => nowMs);
    for (; nowMs < 86_400_000; nowMs += 10_000) pieces.take({ progress: nowMs, message: "m".repeat(300) });
    pieces.end();
    let chars = 0;
    for await (const piece of pieces) chars += piece.length;
    expect(chars).toBeLessThan(32_769);
  });

  it("that tells nothing is waited for until its end", async () => {
    const pieces = new ProgressPieces(() => 0);
    pieces.end();
    pieces.take({ progress: 1 });
    expect(await pieces.begun).toBe(false);
  });
});

describe("what a waiting client hears", () => {
  const asked: AskedCall = { tool: "t", key: "k", text: "{}", isRead: false };

  it("always says more progress than before, whatever the server says", () => {
    const call = new OpenCall(asked, 1n, 0, () => undefined);
    const heard: number[] = [];
    let beat = () => {};
    const after = (ms: number, run: () => void) => {
      expect(ms).toBe(PROGRESS_MS);
      beat = run;
      return () => undefined;
    };
    const stop = reportWhile(call, ({ progress }) => heard.push(progress), { after });
    beat();
    for (const progress of [0, 50, 50, 20, 100, -5, Number.MAX_SAFE_INTEGER]) call.progressed({ progress });
    beat();
    beat();
    expect(heard.length).toBe(10);
    expect(heard).toEqual([...new Set(heard)].sort((a, b) => a - b));
    expect(heard).toContain(50);
    stop();
    call.progressed({ progress: Number.MAX_SAFE_INTEGER });
    expect(heard.length).toBe(10);
  });

  it("is the server's own words, and that a person is asked", () => {
    const call = new OpenCall(asked, 1n, 0, () => undefined);
    const heard: (string | undefined)[] = [];
    reportWhile(call, ({ message }) => heard.push(message), { after: () => () => undefined });
    call.asking({ approval: "q", expiresAtMs: 0 });
    call.progressed({ progress: 1, total: 2, message: "half" });
    expect(heard).toEqual([expect.stringMatching(/^It waits for a person's approval \(q/), "half"]);
    expect(call.question).toBeUndefined();
  });
});
