import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ok } from "../../src/base/faults.ts";
import { ROLE_LIMITS_DEFAULT } from "../../src/base/limits.ts";
import type { Config } from "../../src/host/config.ts";
import { identitiesOf } from "../../src/host/config_identities.ts";
import { loadConditionCompiler } from "../../src/policy/conditions.ts";
import { compileArgumentsSchema } from "../../src/policy/schema.ts";
import { compiled, faultsOf } from "./config_fixture.ts";

function example(name: string): string {
  return readFileSync(new URL(`../../examples/${name}`, import.meta.url), "utf8");
}

const EXAMPLE = example("callgate.toml");
const LINES = EXAMPLE.split("\n");

interface Setting {
  readonly index: number;
  readonly key: string;
  readonly value: string;
  /** Written behind a `#`: an option at its default. */
  readonly commented: boolean;
}

const SETTINGS: readonly Setting[] = LINES.flatMap((line, index) => {
  const parts = /^(#?)([a-z][a-z_.]*) = (.+)$/.exec(line);
  if (parts === null) return [];
  return [{ index, commented: parts[1] === "#", key: parts[2]!, value: parts[3]! }];
});
const DEFAULTS = SETTINGS.filter(({ commented }) => commented);

function withLine(index: number, line: string): string {
  return LINES.with(index, line).join("\n");
}

function settled({ policy, ...rest }: Config) {
  return { ...rest, policy: { ...policy, version: "" } };
}

describe("examples/callgate.toml", () => {
  it("compiles without a fault and without a warning", async () => {
    expect((await compiled(EXAMPLE)).warnings).toEqual([]);
  });

  it("is right on any machine: it names no user and no group that may not be there", async () => {
    const { warnings } = await compiled(EXAMPLE, { identities: identitiesOf("", "") });
    expect(warnings).toEqual([]);
  });

  it("states every option: what the shapes know, it has", () => {
    const keys = new Set(SETTINGS.map(({ key }) => key.split(".")[0]));
    const known = [
      ["allow_same_user", "sockets", "state", "drain_timeout", "frame_timeout", "replay_for", "level"],
      ["keep_for", "checkpoint_every", "bytes_max"],
      ["users", "groups", "group", "mode", "sessions", "taint_scope", "isolated", "operator", "broker"],
      ["class_max", "provides", ...Object.keys(ROLE_LIMITS_DEFAULT)],
      ["role", "description", "effect", "class", "untrusted", "timeout", "max_result_bytes", "on_oversize"],
      ["schema", "schema_file", "destinations", "store", "store_key", "record", "audit_arguments"],
      ["id", "tools", "when", "taint_max", "taint_untrusted", "above_taint", "expires", "reason"],
      ["max_calls", "max_calls_per", "approval_ttl", "remember", "refuse_for"],
      ["to", "longest", "effects"],
    ].flat();
    expect(known.filter((key) => !keys.has(key))).toEqual([]);
    expect(EXAMPLE).toContain("anyone = true");
  });

  it.each(DEFAULTS.map(({ index, key, value }) => [`${key} = ${value}`, index]))(
    "states the real default: %s",
    async (setting, index) => {
      const stated = await compiled(withLine(Number(index), String(setting)));
      expect(settled(stated.config)).toEqual(settled((await compiled(EXAMPLE)).config));
    },
  );

  it("has an option at its default for every default that there is", () => {
    expect(DEFAULTS.length).toBeGreaterThanOrEqual(39);
    for (const [key, value] of Object.entries(ROLE_LIMITS_DEFAULT)) {
      expect(DEFAULTS.map((setting) => `${setting.key} = ${setting.value}`)).toContain(`${key} = ${value}`);
    }
  });

  it.each(SETTINGS.map(({ index, key, value }) => [index + 1, key, value]))(
    "line %i: %s, misspelt, is an unknown key on that line",
    async (line, key, value) => {
      const [first, ...others] = String(key).split(".");
      const misspelt = [`${first}x`, ...others].join(".");
      const faults = await faultsOf(withLine(Number(line) - 1, `${misspelt} = ${value}`));
      const here = faults.filter((found) => found.line === line);
      expect(here.map(({ column }) => column)).toEqual([1]);
      expect(here[0]?.message).toContain(`unknown key "${first}x"`);
      expect(here[0]?.message).toContain(`did you mean "${first}`);
    },
  );

  const typed = SETTINGS.filter(({ key }) => !key.startsWith("schema."));
  it.each(typed.map(({ index, key, value }) => [index + 1, key, value]))(
    "line %i: %s with another type is a fault on that value",
    async (line, key, value) => {
      for (const wrong of [
        "3.5",
        "[[]]",
        "{ a = 1 }",
        "2027-01-01",
        /^["']/.test(String(value)) || key === "group" ? "true" : '"?"', // a group may be a name
      ]) {
        if (wrong === "{ a = 1 }" && key === "schema") continue;
        const faults = await faultsOf(withLine(Number(line) - 1, `${key} = ${wrong}`));
        const here = faults.filter((found) => found.line === line);
        expect(here, `${key} = ${wrong}`).not.toEqual([]);
        expect(here[0]!.column).toBeGreaterThanOrEqual(String(key).length + 4);
        expect(here[0]!.message).toContain("must be");
      }
    },
  );

  it.each(
    SETTINGS.filter(({ commented }) => !commented).map(({ index, key, value }) => [index + 1, key, value]),
  )("line %i: %s written twice is a duplicate on the second line", async (line, key, value) => {
    const twice = LINES.toSpliced(Number(line), 0, `${key} = ${value}`).join("\n");
    const faults = await faultsOf(twice);
    expect(faults.map((found) => found.line)).toEqual([Number(line) + 1]);
    expect(faults[0]?.message).toContain("duplicate key");
  });
});

describe("both examples", () => {
  it.each(["callgate.toml", "try.toml"])("compile with the real compilers too: %s", async (name) => {
    const { config } = await compiled(example(name), {
      loadConditions: loadConditionCompiler,
      compileSchema: compileArgumentsSchema,
      readRelative: async (path) => ok(example(path)),
    });
    for (const { name: tool, schema } of config.policy.tools.values())
      expect([tool, schema?.closed]).toEqual([tool, true]);
    expect(config.policy.grants.some((grant) => grant.when !== undefined)).toBe(true);
  });
});

describe("the approver of examples/callgate.toml", () => {
  it("answers every question that the other roles' grants ask, and asks none itself", async () => {
    const { policy } = (await compiled(EXAMPLE)).config;
    const asking = policy.grants.filter(({ effect, aboveTaint }) => effect === "ask" || aboveTaint === "ask");
    expect(new Set(asking.map(({ role }) => role))).toEqual(new Set(["agent"]));
    const approving = policy.grants.filter(({ role }) => role === "approver");
    expect(approving.map(({ tools }) => tools)).toEqual([["callgate.approvals.*"]]);
    expect(policy.roles.get("approver")).toMatchObject({ operator: true });
  });
});

describe("examples/try.toml", () => {
  it("compiles, and warns of nothing but that one user, and any, is agent, provider and operator", async () => {
    const { config, warnings } = await compiled(example("try.toml"));
    expect(warnings.map(({ code }) => code)).toEqual(["same_user", "anyone_provider", "anyone_operator"]);
    expect(config.socketsDir).toBe("/etc/callgate/run");
    expect(config.stateDir).toBe("/etc/callgate/run-state");
    expect([...config.policy.roles.keys()]).toEqual(["agent", "files", "operator"]);
  });
});
