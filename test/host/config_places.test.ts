import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { inspectConfig, inspectPlaces } from "../../src/host/config_places.ts";
import { compiled } from "./config_fixture.ts";
import { cleanUp, requireRoot, STRANGER, temporaryDirectory } from "./listen_fixture.ts";

beforeAll(requireRoot);
afterEach(cleanUp);

const CONFIG = `# the first line is not where the directories are set
[daemon]
sockets = "run"
state = "state"
[roles.agent]
users = [7]
`;

/** A config in a directory of its own, whatever the umask. */
function place(): { readonly directory: string; readonly config: string } {
  const directory = temporaryDirectory();
  chmodSync(directory, 0o755);
  const config = join(directory, "callgate.toml");
  writeFileSync(config, CONFIG);
  chmodSync(config, 0o644);
  return { directory, config };
}

function makeDirectory(path: string, mode: number): string {
  mkdirSync(path);
  chmodSync(path, mode);
  return path;
}

async function found(config: string): Promise<readonly string[]> {
  const inspected = await inspectConfig(config);
  if (!inspected.ok)
    return inspected.fault.map(({ line, column, message }) => `${line}:${column} ${message}`);
  return inspected.value.warnings.map(({ line, column, code }) => `${line}:${column} [${code}]`);
}

describe("a config whose places others could reach does not check as one without errors", () => {
  it("and one whose places are ours, or can be made, does", async () => {
    const { directory, config } = place();
    expect(await found(config)).toEqual([]);
    makeDirectory(join(directory, "run"), 0o755);
    makeDirectory(join(directory, "state"), 0o700);
    expect(await found(config)).toEqual([]);
  });

  it("the config file that its group may write", async () => {
    const { config } = place();
    chmodSync(config, 0o664);
    const [line] = await found(config);
    expect(line).toMatch(/^1:1 the daemon would not start: .*can be written by others.*chmod go-w/);
  });

  it("the sockets' directory that anyone may write, at its own line", async () => {
    const { directory, config } = place();
    makeDirectory(join(directory, "run"), 0o777);
    const lines = await found(config);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(/^3:11 the daemon would not start: .*run" can be written by others/);
  });

  it("the state directory that others may so much as enter, at its own line", async () => {
    const { directory, config } = place();
    const state = makeDirectory(join(directory, "state"), 0o750);
    const lines = await found(config);
    expect(lines).toEqual([
      `4:9 the daemon would not start: "${state}" can be entered by others than its owner (mode 0750): chmod 700 "${state}".`,
    ]);
  });

  it("something else in a directory's place", async () => {
    const { directory, config } = place();
    writeFileSync(join(directory, "run"), "");
    writeFileSync(join(directory, "state"), "");
    expect((await found(config)).map((line) => line.split(" ")[0])).toEqual(["3:11", "4:9"]);
  });

  it("the file of a schema, which is policy too, at the line that names it", async () => {
    const { directory, config } = place();
    const schema = join(directory, "x.json");
    writeFileSync(schema, '{"type":"object","additionalProperties":false}');
    writeFileSync(config, `${CONFIG}[tools.x]\nrole = "agent"\nschema_file = "x.json"\n`);
    chmodSync(schema, 0o666);
    expect((await found(config))[0]).toMatch(
      /^9:15 the daemon would not start: .*x\.json" can be written by others/,
    );
  });

  it("all of them at once", async () => {
    const { directory, config } = place();
    chmodSync(config, 0o666);
    makeDirectory(join(directory, "run"), 0o777);
    makeDirectory(join(directory, "state"), 0o777);
    expect((await found(config)).map((line) => line.split(" ")[0])).toEqual(["1:1", "3:11", "4:9"]);
  });

  it("a mistake in the text comes first, and is told alone", async () => {
    const { config } = place();
    writeFileSync(config, `${CONFIG}usrs = [7]\n`);
    chmodSync(config, 0o666);
    expect(await found(config)).toHaveLength(1);
  });
});

describe("what depends on the user that the daemon runs as is a warning, since another may check", () => {
  it("a directory above that is missing", async () => {
    const { directory, config } = place();
    writeFileSync(config, CONFIG.replace('"run"', '"none/run"'));
    expect(await found(config)).toEqual(["3:11 [place]"]);
    const inspected = await inspectConfig(config);
    expect(inspected.ok && inspected.value.warnings[0]?.message).toContain(
      `make "${join(directory, "none")}" first`,
    );
  });

  it("a directory that belongs to the daemon's user and not to the one who checks", async () => {
    const { directory, config } = place();
    const state = makeDirectory(join(directory, "state"), 0o700);
    chownSync(state, STRANGER, STRANGER);
    expect(await found(config)).toEqual(["4:9 [place]"]);
    const { config: read, ...rest } = await compiled(CONFIG);
    const places = {
      config: { ...read, path: config, socketsDir: join(directory, "run"), stateDir: state },
      ...rest,
    };
    expect(inspectPlaces(places, STRANGER)).toEqual({ faults: [], warnings: [] });
    expect(inspectPlaces(places, STRANGER + 1).warnings.map(({ code }) => code)).toContain("place");
  });

  it("and a state directory behind a link is looked at where the link leads", async () => {
    const { directory, config } = place();
    makeDirectory(join(directory, "real"), 0o755);
    symlinkSync("real", join(directory, "state"));
    expect((await found(config))[0]).toMatch(/^4:9 the daemon would not start: .*can be entered by others/);
  });
});
