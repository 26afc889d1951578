// The config that most tests of the broker begin with, and the pieces that they add to it.

const OBJECT = `schema.type = "object"
schema.additionalProperties = false`;

/** A grant that allows whatever the taint is. */
export function allow(id: string, role: string, tools: string, more = ""): string {
  return `[[grants]]
id = "${id}"
role = "${role}"
tools = ${tools}
effect = "allow"
taint_max = "restricted"
taint_untrusted = true
${more}
`;
}

export const ROLES = `[roles.agent]
users = ["agent"]
[roles.files]
users = ["callgate-files"]
class_max = "confidential"
[roles.operator]
users = ["operator"]
operator = true
`;

/** `read` and `write` share the store of `files`, told apart by path; `search` reads all of it. */
export const TOOLS = `[tools.read]
role = "files"
effect = "read"
untrusted = false
store_key = "path"
timeout = "10s"
${OBJECT}
schema.properties.path = { type = "string" }
[tools.search]
role = "files"
effect = "read"
untrusted = false
${OBJECT}
schema.properties.text = { type = "string" }
[tools.write]
role = "files"
effect = "write"
untrusted = false
store_key = "path"
${OBJECT}
schema.properties.path = { type = "string" }
schema.properties.text = { type = "string" }
[tools.cut]
role = "files"
untrusted = false
max_result_bytes = 10
on_oversize = "cut"
store = false
[tools.whole]
role = "files"
untrusted = false
max_result_bytes = 10
on_oversize = "fail"
store = false
[tools.floor]
role = "files"
class = "internal"
store = false
effect = "read"
[tools.free]
role = "files"
untrusted = false
store = false
effect = "read"
`;

export const GRANTS = `${allow("agent-uses", "agent", '["read", "search", "write", "cut", "whole", "floor", "free", "callgate.*"]')}
${allow("operator-operates", "operator", '["callgate.*"]')}
`;

export const BASIC = `${ROLES}${TOOLS}${GRANTS}`;
