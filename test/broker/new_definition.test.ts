// An operator puts another definition of an announced tool into service: what humans and grants said of
// the one before does not hold for it unseen.

import { describe, expect, it } from "vitest";
import { Approver, askGrant, put } from "./approvals_rig.ts";
import { allow, ROLES } from "./configs.ts";
import { type Rig, withRig } from "./rig.ts";
import type { RigPeer } from "./rig_peer.ts";

const WORLD = `${ROLES}[roles.mail]
users = ["callgate-mail"]
provides = ["mail."]
${allow("operator-operates", "operator", '["callgate.*"]')}
${allow("mail-announces", "mail", '["callgate.tools.*"]')}
${askGrant("agent-mails", "agent", '["mail.*"]')}
`;

const CLOSED = { type: "object", properties: { id: { type: "integer" } }, additionalProperties: false };

/** Announces `mail.send` and has it accepted; what the operator heard. */
async function accepted(
  rig: Rig,
  mail: RigPeer,
  operator: RigPeer,
  description: string,
  schema: object = CLOSED,
) {
  const tools = [{ name: "mail.send", description, schema }];
  const announced = await put(rig, mail, "callgate.tools.announce", { tools });
  const [{ digest }] = announced.json["tools"] as [{ digest: string }];
  return put(rig, operator, "callgate.tools.accept", { tool: "mail.send", digest });
}

describe("another definition of a tool", () => {
  it("is asked about anew: an approval remembered for the one before does not let it through", () =>
    withRig(WORLD, async (rig) => {
      const [agent, mail, approver] = [rig.peer("agent"), rig.peer("mail"), new Approver(rig)];
      await accepted(rig, mail, approver.peer, "sends a note");
      await put(rig, agent, "mail.send", { id: 1 });
      await approver.letThrough({ remember: { what: "tool", seconds: 3600, calls: 9 } });
      await put(rig, agent, "mail.send", { id: 2 });
      expect(mail.requests).toHaveLength(2);
      await accepted(rig, mail, approver.peer, "sends a note"); // the very same: nothing changes
      await put(rig, agent, "mail.send", { id: 3 });
      expect(mail.requests).toHaveLength(3);
      await accepted(rig, mail, approver.peer, "sends everything");
      expect((await put(rig, agent, "mail.send", { id: 4 })).seen).toEqual(["part: pending_approval"]);
      expect(mail.requests).toHaveLength(3);
    }));

  it("is not accepted with an open schema where a grant allows the tool under a condition", () => {
    const conditional = allow("agent-mails-once", "agent", '["mail.*"]', "when = 'args.id == 1'");
    return withRig(
      `${WORLD.replace(askGrant("agent-mails", "agent", '["mail.*"]'), "")}${conditional}`,
      async (rig) => {
        const [agent, mail, operator] = [rig.peer("agent"), rig.peer("mail"), rig.peer("operator")];
        const { additionalProperties: _, ...open } = CLOSED;
        const refused = await accepted(rig, mail, operator, "one", open);
        expect(refused.sentence).toContain("`agent-mails-once`");
        expect((await put(rig, agent, "mail.send", { id: 1 })).end).toBe("failed no_provider");
        expect((await accepted(rig, mail, operator, "two")).json["accepted"]).toBe(true);
        await put(rig, agent, "mail.send", { id: 1 });
        expect(mail.requests).toHaveLength(1);
      },
    );
  });
});
