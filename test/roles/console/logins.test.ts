import { describe, expect, it } from "vitest";
import {
  LOGIN_MS,
  LOGINS_MAX,
  Logins,
  type OpenedLogin,
  TOKEN_MS,
  WRONG_TOKENS_MAX,
} from "../../../src/roles/console/logins.ts";
import { FakeClock } from "../../broker/fake_clock.ts";
import { effectsOf } from "./rig.ts";

function start(): { clock: FakeClock; logins: Logins } {
  const clock = new FakeClock(1000);
  return { clock, logins: new Logins(effectsOf(clock)) };
}

function opened(logins: Logins, token = logins.newLink().token): OpenedLogin {
  const redeemed = logins.redeem(token);
  if (typeof redeemed === "string") throw new Error(redeemed);
  return redeemed;
}

describe("a link", () => {
  it("has 256 bits, and no two are the same", () => {
    const { logins } = start();
    const tokens = [1, 2, 3].map(() => logins.newLink().token);
    for (const token of tokens) expect(Buffer.from(token, "base64url")).toHaveLength(32);
    expect(new Set(tokens).size).toBe(3);
  });

  it("logs in once", () => {
    const { logins } = start();
    const { token } = logins.newLink();
    opened(logins, token);
    expect(logins.redeem(token)).toBe("wrong");
  });

  it("is good until its time, not at it, and not longer where the clock was set back", () => {
    const { clock, logins } = start();
    const [first, second] = [logins.newLink(), logins.newLink()];
    clock.jump(TOKEN_MS - 1);
    opened(logins, first.token);
    clock.set(-3_600_000);
    clock.jump(1);
    expect(logins.redeem(second.token)).toBe("wrong");
  });

  it("makes room for newer ones", () => {
    const { logins } = start();
    const tokens = [1, 2, 3, 4, 5].map(() => logins.newLink().token);
    expect(logins.redeem(tokens[0]!)).toBe("wrong");
    opened(logins, tokens[1]!);
    opened(logins, tokens[4]!);
  });

  it("is not looked at for a minute after many wrong ones", () => {
    const { clock, logins } = start();
    const { token } = logins.newLink();
    for (let i = 0; i < WRONG_TOKENS_MAX; i += 1) expect(logins.redeem(`guess ${i}`)).toBe("wrong");
    expect(logins.redeem(token)).toBe("limited");
    clock.jump(60_000);
    opened(logins, token);
  });
});

describe("a login", () => {
  it("is found by its cookie and its key together, never by those of two", () => {
    const { logins } = start();
    const [one, other] = [opened(logins), opened(logins)];
    expect(logins.find(one.cookie, one.key)).toBeDefined();
    expect(logins.find(one.cookie, other.key)).toBeUndefined();
    expect(logins.find(one.key, one.cookie)).toBeUndefined();
    expect(logins.find("", "")).toBeUndefined();
  });

  it("ends when it is ended, and others stay", () => {
    const { logins } = start();
    const [one, other] = [opened(logins), opened(logins)];
    const login = logins.find(one.cookie, one.key)!;
    logins.end(login);
    expect(login.ended.aborted).toBe(true);
    expect(logins.find(one.cookie, one.key)).toBeUndefined();
    expect(logins.find(other.cookie, other.key)).toBeDefined();
  });

  it("ends after twelve hours by itself, and leaves no timer", () => {
    const { clock, logins } = start();
    const one = opened(logins);
    const login = logins.find(one.cookie, one.key)!;
    clock.jump(LOGIN_MS);
    expect(logins.find(one.cookie, one.key)).toBeUndefined(); // also where no timer has run yet
    while (clock.step(clock.nowMs() + LOGIN_MS));
    expect(login.ended.aborted).toBe(true);
    expect(clock.timers).toBe(0);
  });

  it("gives way to a new one where there are too many", () => {
    const { logins } = start();
    const all = Array.from({ length: LOGINS_MAX + 1 }, () => opened(logins));
    expect(logins.find(all[0]!.cookie, all[0]!.key)).toBeUndefined();
    for (const { cookie, key } of all.slice(1)) expect(logins.find(cookie, key)).toBeDefined();
  });

  it("ends with the console", () => {
    const { clock, logins } = start();
    const one = opened(logins);
    const { token } = logins.newLink();
    logins.close();
    expect(logins.find(one.cookie, one.key)).toBeUndefined();
    expect(logins.redeem(token)).toBe("wrong");
    expect(clock.timers).toBe(0);
  });
});
