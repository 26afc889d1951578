import fc from "fast-check";
import type {
  ProviderRequest,
  TransportInvocation,
  TransportResult,
  Usage,
} from "../../src/connector/contract.ts";
import type { Node, Shape } from "../../src/connector/shape.ts";

/** Valid documents: the rules over several fields hold too. */
export function documentsOf(shape: Shape<unknown>): fc.Arbitrary<unknown> {
  const { node } = shape;
  const name = node.kind === "map" ? node.name : "";
  return valuesOf(node).map((value) => MENDED[name]?.(value) ?? value);
}

const MENDED: Readonly<Record<string, (value: unknown) => unknown>> = {
  ProviderRequest: (value) => mendedRequest(value as ProviderRequest),
  TransportInvocation: (value) => {
    const invocation = value as TransportInvocation;
    return { ...invocation, request: mendedRequest(invocation.request) };
  },
  TransportReceipt: (value) => mendedReceipt(value as Receipt),
  TransportResult: (value) => mendedResult(value as TransportResult),
};

function mendedRequest(request: ProviderRequest): ProviderRequest {
  const tools = request.tools.map((tool, i) => ({ ...tool, name: `${i}${tool.name}`.slice(0, 64) }));
  const output_format_name = request.output_schema_json === null ? null : (request.output_format_name ?? "f");
  return {
    ...request,
    tools,
    output_format_name,
    tool_choice: tools.length > 0 ? request.tool_choice : "auto",
  };
}

type Receipt = Extract<
  TransportResult["disposition"],
  { readonly Transported: unknown }
>["Transported"]["receipt"];

function mendedReceipt(receipt: Receipt): Receipt {
  if (!("Completed" in receipt.outcome)) return receipt;
  const { Completed } = receipt.outcome;
  return { ...receipt, outcome: { Completed: { ...Completed, usage: mendedUsage(Completed.usage) } } };
}

function mendedUsage(usage: Usage): Usage {
  const within = (part: number | null, whole: number | null) =>
    part === null || whole === null ? part : Math.min(part, whole);
  return {
    ...usage,
    reasoning_output_tokens: within(usage.reasoning_output_tokens, usage.output_tokens),
    cached_input_tokens: within(usage.cached_input_tokens, usage.input_tokens),
  };
}

function mendedResult(result: TransportResult): TransportResult {
  if (!("Transported" in result.disposition)) return { ...result, request_id: "r" };
  const receipt = mendedReceipt(result.disposition.Transported.receipt);
  const { request_id, caller_runtime_id, outcome } = receipt;
  const calls = "Completed" in outcome && outcome.Completed.stop_reason === "ToolCalls";
  const ends = "Completed" in outcome && outcome.Completed.stop_reason === "EndTurn";
  const call = { ToolCall: { call_id: "c", name: "n", arguments: "{}" } };
  const payloads = result.disposition.Transported.events
    .map(({ payload }) => payload)
    .filter((payload) => !(ends && "ToolCall" in payload));
  const events = [...payloads, ...(calls ? [call] : [])].map((payload, sequence) => ({ sequence, payload }));
  return { ...result, request_id, caller_runtime_id, disposition: { Transported: { events, receipt } } };
}

/** Made from the node's own definition, without the rules over several fields. */
function valuesOf(node: Node): fc.Arbitrary<unknown> {
  switch (node.kind) {
    case "constant":
      return fc.constant(node.text);
    case "text":
      return textsOf(node.rule.name);
    case "bytes":
      return fc
        .uint8Array({ minLength: node.bytesMin, maxLength: Math.min(node.bytesMax, node.bytesMin + 70) })
        .filter((bytes) => node.zero || bytes.some((byte) => byte !== 0));
    case "integer":
      return fc.oneof(
        fc.integer({ min: node.min, max: Math.min(node.max, node.min + 300) }),
        fc.maxSafeNat().map((value) => node.min + (value % (node.max - node.min + 1))),
        fc.constantFrom(node.min, node.max),
      );
    case "boolean":
      return fc.boolean();
    case "optional":
      return fc.option(valuesOf(node.of), { nil: null });
    case "list":
      return fc.array(valuesOf(node.of), { maxLength: 5 });
    case "tag":
      return fc.constantFrom(...node.tags.map(({ name }) => name));
    case "choice":
      return fc.oneof(...node.cases.map((one) => valuesOf(one.node).map((value) => ({ [one.name]: value }))));
    case "map":
      return fc.record(Object.fromEntries(node.fields.map((field) => [field.name, valuesOf(field.node)])));
  }
}

const NAMES = fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/);

function textsOf(rule: string): fc.Arbitrary<string> {
  if (rule === "name") return NAMES;
  if (rule === "call_id") return fc.stringMatching(/^[!-~]{1,64}$/);
  if (rule === "json")
    return fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value));
  if (rule === "id") return fc.oneof(NAMES, fc.constantFrom("\ufeffé", "a b", "東京", "x".repeat(256)));
  if (rule === "failure_message") return fc.constantFrom("no", "é".repeat(512), "x".repeat(1024));
  const units = fc.string({ unit: "binary", minLength: 1, maxLength: 40 });
  return fc.oneof(
    { weight: 30, arbitrary: units },
    { weight: 2, arbitrary: fc.constantFrom("\ufeff", "\0", "x".repeat(300)) },
    { weight: 1, arbitrary: fc.constantFrom("x".repeat(3000), "é".repeat(35_000)) },
  );
}
