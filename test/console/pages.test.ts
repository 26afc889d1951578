import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { connect } from "../../src/client/caller.ts";
import type { ToolResponse } from "../../src/wire/message.ts";
import { cleanUp, onCleanUp } from "../daemon/daemon.ts";
import { describeWith } from "../needs.ts";
import { goTo, NEEDED, openBrowser, placeWith } from "./browser.ts";
import { CHANGED_SEARCH, HOUSE_CONFIG, serve } from "./house.ts";
import { expectUnharmed, lookAt, type OpenHouse, openHouse, playMorning, startHouse } from "./house_rig.ts";

// Sessions, grants, policy, audit and load before a real broker: what is shown is what is, and what is done is done.

let browser: Browser;
let house: OpenHouse;

beforeAll(async () => {
  browser = await openBrowser();
  house = await openHouse();
});
afterAll(async () => {
  await browser?.close();
  await cleanUp();
});

const enter = (at: string): Promise<Page> => lookAt(browser, house, { at });

/** The page of a session that had a morning of its own, for those who change something in it. */
async function enterLetter(letter: string): Promise<Page> {
  await playMorning(house, letter);
  return enter(`sessions/chat/${letter}`);
}

/** One call of a role, to its end. */
async function call(role: string, tool: string, args: object, session?: string): Promise<ToolResponse> {
  const caller = await connect({ to: { path: house.socket(role) } });
  onCleanUp(() => caller.close());
  return caller.call(tool, { ...args }, session === undefined ? {} : { session }).final;
}

function onOneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ");
}

describeWith(NEEDED, "the page of a session", () => {
  it("is opened from the list with the keyboard, says where one is, and is left by Escape", async () => {
    const page = await enter("sessions");
    await page.getByLabel("Filter").fill("letter-to-anna untrusted");
    await page.getByText(/^1 of \d+ sessions\.$/).waitFor();
    await page.locator(".row-name").first().focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Session letter-to-anna" }).waitFor();
    expect(await page.evaluate("document.activeElement.tagName")).toBe("H1");
    await page.keyboard.press("Escape");
    await page.getByRole("heading", { name: "Sessions", exact: true }).waitFor();
  });

  it("tells its calls, what raised its taint and to what, newest first; and the user's words as text", async () => {
    const page = await enter("sessions/chat/letter-to-anna");
    await page.locator(".timeline > li").first().waitFor();
    const rows = await page.locator(".timeline > li").allInnerTexts();
    const tools = rows.map((row) => /(mail\.send|write_file|pay|read_file|fetch_page|opened)/.exec(row)?.[0]);
    expect(tools).toEqual([
      "mail.send",
      "write_file",
      "pay",
      "read_file",
      "fetch_page",
      "write_file",
      "read_file",
      "opened",
    ]);
    const rises = await page.locator(".step").allInnerTexts();
    expect(rises.map(onOneLine)).toEqual([
      expect.stringContaining("internal untrusted → to confidential untrusted"),
      expect.stringContaining("internal trusted → to internal untrusted"),
      expect.stringContaining("public trusted → to internal trusted"),
    ]);
    await page.getByText("Read the page on harbours").waitFor();
    await page.getByText("A person is asked about").waitFor();
    await expectUnharmed(page);
  });

  it("lowers the taint that was on the screen, with its reason, and says before what it would change", async () => {
    const page = await enterLetter("lowered");
    await page.getByRole("button", { name: "Lower the taint" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("write_file").waitFor();
    const changes = await dialog.locator(".consequences li").allInnerTexts();
    expect(changes.map(onOneLine)).toEqual(["write_file ask → becomes conditional"]);
    const endorse = dialog.getByRole("button", { name: /^Endorse/ });
    expect(await endorse.isDisabled()).toBe(true);
    await dialog.getByLabel("Reason").fill("I have read the page myself.");
    await endorse.click();
    await page.getByText("lowered to confidential, trusted").waitFor();
    const shown = await call("operator", "callgate.sessions.show", {
      role: "chat",
      session: "lowered",
    });
    expect(shown).toMatchObject({
      content: expect.stringContaining('"taint":{"class":"confidential","untrusted":false}'),
    });
  });

  it("lowers nothing where the taint has risen since it was looked at", async () => {
    await playMorning(house, "risen");
    const page = await enter("sessions/chat/risen.notes");
    await page.getByRole("button", { name: "Lower the taint" }).click();
    const dialog = page.getByRole("dialog");
    await call("chat", "fetch_page", { url: "https://x.example" }, "risen.notes");
    await dialog.getByLabel("public").check();
    await dialog.getByLabel("Reason").fill("It was only notes.");
    await dialog.getByRole("button", { name: /^Endorse/ }).click();
    await dialog.getByRole("alert").getByText("The taint is not in the version that you saw").waitFor();
  });

  it("freezes it after a second press, which ends its question, and lets it go on", async () => {
    const page = await enterLetter("frozen");
    await page.getByRole("button", { name: "Freeze this session" }).click();
    await page.getByText("ends at once").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Freeze this session" }).click();
    await page.getByRole("button", { name: "Freeze", exact: true }).click();
    await page.getByText("is frozen. 1 call of it ended with that.").waitFor();
    const read = () => call("chat", "read_file", { path: "/x" }, "frozen");
    expect(await read()).toMatchObject({ status: "denied" });
    await page.getByRole("button", { name: "Let this session go on" }).click();
    await page.getByRole("button", { name: "Let it go on" }).click();
    await page.getByRole("button", { name: "Freeze this session" }).waitFor();
    expect(await read()).toMatchObject({ status: "result" });
  });

  it("of a session that is not there says so", async () => {
    const page = await enter("sessions/chat/nobody%E2%80%AE");
    await page.getByRole("alert").first().waitFor();
    await expectUnharmed(page);
  });
});

describeWith(NEEDED, "the page of grants", () => {
  it("adds a grant that then lets calls through, and revokes it after a second press", async () => {
    const page = await enter("grants");
    const write = () => call("helper", "write_file", { path: "/a", content: "x" });
    expect(await write()).toMatchObject({ status: "denied" });
    await page.getByRole("button", { name: "Add a grant" }).click();
    await page.getByLabel("Role").selectOption("helper");
    await page.getByLabel("Tools").fill("write_file");
    await page.getByLabel("Also after the session").check();
    await page.getByLabel("Reason").fill("For this morning.");
    await page.getByText("Allows helper to call write_file in any session").waitFor();
    await page.getByRole("button", { name: "Add this grant" }).click();
    await page.getByRole("heading", { name: /Grant runtime\./ }).waitFor();
    expect(await write()).toMatchObject({ status: "result" });
    await page.getByRole("button", { name: "Revoke…" }).click();
    await page.getByRole("button", { name: "Revoke this grant" }).click();
    await page.getByText("10 of 10 grants.").waitFor();
    expect(await write()).toMatchObject({ status: "denied" });
  });

  it("shows what the broker refuses at the field that it is about, and goes there", async () => {
    const page = await enter("grants/+");
    const add = page.getByRole("button", { name: "Add this grant" });
    await add.click();
    await page.getByText("Choose whom it serves.").waitFor();
    await page.getByLabel("Role").selectOption("chat");
    await page.getByLabel("Tools").fill("nosuch");
    await page.getByLabel("Reason").fill("Why not.");
    await add.click();
    const tools = page.getByLabel("Tools");
    await page.getByText("There is no tool `nosuch` in service").waitFor();
    expect(await tools.getAttribute("aria-invalid")).toBe("true");
    expect(await page.evaluate("document.activeElement.value")).toBe("nosuch");
    await tools.fill("read_file");
    await page.getByLabel("Condition").fill("args.path ==");
    await add.click();
    await page.getByText("The condition does not compile").waitFor();
    await page.getByLabel("Condition").fill("");
    await page.getByLabel("Ends after").fill("30d");
    await add.click();
    await page.getByText("a grant that lasts so long").waitFor();
    expect(await page.getByLabel("Ends after").getAttribute("aria-invalid")).toBe("true");
  });

  it("says of a console whose role may not look which grant is missing", async () => {
    const without = HOUSE_CONFIG.replace(
      /(id = "operator-operates"\nrole = "operator"\ntools = )\["callgate\.\*"\]/,
      '$1["callgate.status"]',
    );
    const other = await startHouse(placeWith(without));
    const page = await lookAt(browser, other, { at: "grants" });
    await page.getByText("The console's role may not use callgate.grants.list").waitFor();
    await goTo(page, "audit");
    await page.getByText("The console's role may not use callgate.audit.export").waitFor();
  });
});

describeWith(NEEDED, "the page of the policy", () => {
  it("tells the open ways in words, draws them, and has them in the table", async () => {
    const page = await enter("policy");
    await page.getByText("4 ways", { exact: true }).waitFor();
    await page
      .getByText("helper reads fetch_page; then helper calls mail.send (send) without a person.")
      .waitFor();
    const description = await page.locator(".picture desc").textContent();
    expect(description).toContain("4 ways open: helper reads fetch_page");
    expect(await page.locator(".picture .line-open").count()).toBeGreaterThanOrEqual(3);
    await page.getByRole("button", { name: "chat write_file" }).click();
    await page
      .getByText("public to confidential, with nothing untrusted read: by chat-writes-notes")
      .waitFor();
    await expectUnharmed(page);
  });

  it("says what would be decided about a call, grant by grant, and that bad arguments are none", async () => {
    const page = await enter("policy");
    const form = page.getByRole("region", { name: "What would be decided?" });
    await form.getByLabel("Role").selectOption("chat");
    await form.getByLabel("Tool").fill("write_file");
    await form.getByLabel("Arguments").fill("{");
    await form.getByRole("button").click();
    await form.getByRole("alert").getByText("must be the text of one JSON object").waitFor();
    await form.getByLabel("Arguments").fill('{"path":"/srv/notes/a","content":""}');
    await form.getByLabel("Trust").selectOption("untrusted");
    await form.getByRole("button").click();
    await form.locator(".verdict", { hasText: "ask" }).waitFor();
    await form.getByRole("row", { name: /chat-writes-notes allow matches but not at this taint/ }).waitFor();
  });

  it("shows an announced definition as text, accepts it by its digest, and then what a changed one changes", async () => {
    const page = await enter("policy");
    await page.getByRole("button", { name: /^Look at it.*mail\.search/ }).click();
    await page.getByText("Finds letters.").waitFor();
    await expectUnharmed(page);
    await page.getByRole("button", { name: "Accept this definition…" }).click();
    await page.getByRole("button", { name: "Accept it" }).click();
    await page.getByText("Every announced definition that serves has been accepted.").waitFor();

    const changed = await serve(house.socket, CHANGED_SEARCH);
    onCleanUp(() => changed.close());
    await goTo(page, "grants");
    await goTo(page, "policy");
    await page.getByRole("button", { name: /^Look at it.*mail\.search/ }).click();
    await page.locator(".diff-new", { hasText: "sends a copy of each" }).waitFor();
    expect(await page.locator(".diff-gone").allInnerTexts()).toHaveLength(1);
  });
});

describeWith(NEEDED, "the pages of audit and load", () => {
  it("verify the audit, keep where it ended in the browser, and hold it against that and against what is pasted", async () => {
    const page = await enter("audit");
    await page.getByRole("button", { name: "Verify the audit" }).click();
    await page.getByText("The audit is whole.").waitFor();
    await page.getByText("This browser noted").waitFor();
    await page.reload();
    await page.getByText("This browser noted").waitFor();
    await page.getByRole("button", { name: "Verify the audit" }).click();
    await page.getByText(/Held against the checkpoint of record \d+/).waitFor();
    await page.getByLabel("Checkpoint").fill("5");
    expect(await page.getByRole("button", { name: "Verify the audit" }).isDisabled()).toBe(true);
    await page.getByLabel("Checkpoint").fill(`5:${"0".repeat(64)}`);
    await page.getByRole("button", { name: "Verify the audit" }).click();
    await page.getByText("The audit is not whole.").waitFor();
    await page
      .getByText("Record 5 is not the one that the checkpoint names: the chain was written anew.")
      .waitFor();
  });

  it("show the records that a person looks for, and each as it stands", async () => {
    const page = await enter("audit");
    const records = page.getByRole("region", { name: "Records" });
    await records.getByLabel("Decision").selectOption("deny");
    await records.getByLabel("Role").selectOption("chat");
    await records.getByLabel("Session").fill("letter-to-anna");
    await records.getByRole("button", { name: "Search" }).click();
    await records.getByText("That is all that the audit still has.").waitFor();
    expect(await records.locator("tbody tr").count()).toBe(2);
    await records.getByText("denied_by_grant; grant nobody-pays-strangers").waitFor();
    await records.locator(".row-name").first().click();
    await page.getByRole("dialog").getByText('"denied": "no_grant"').waitFor();
    await page.keyboard.press("Escape");
    await records.getByRole("link", { name: "letter-to-anna" }).first().click();
    await page.getByRole("heading", { name: "Session letter-to-anna" }).waitFor();
  });

  it("draw the load, and say the same in tables", async () => {
    const page = await enter("load");
    await page.locator(".chart canvas").nth(7).waitFor();
    const calls = page.locator(".chart", { hasText: "Calls that ended" });
    await calls.getByRole("row", { name: /^result \d/ }).waitFor();
    await page.getByRole("row", { name: /^helper connected/ }).waitFor();
    await page.setViewportSize({ width: 500, height: 800 });
    await page.waitForFunction("document.querySelector('.chart canvas').clientWidth < 480");
    await expectUnharmed(page);
  });
});
