// A service in memory with the vectors' callers, the fake backend and a clock that stands still; and words for what comes
// of a frame. `open` starts another service over the same store.

import { randomBytes } from "node:crypto";
import { ok } from "../../src/base/faults.ts";
import type { Clock, LogFields } from "../../src/base/ports.ts";
import type { ProviderBackend } from "../../src/connector/backend.ts";
import { decodeResponseFrame, encodeRequestFrame } from "../../src/connector/carriage.ts";
import type {
  ProviderRequest,
  TransportEnvelope,
  TransportInvocation,
  TransportResult,
} from "../../src/connector/contract.ts";
import { decode } from "../../src/connector/decode.ts";
import { TRANSPORT_ENVELOPE, TRANSPORT_INVOCATION, TRANSPORT_RESULT } from "../../src/connector/documents.ts";
import { encode } from "../../src/connector/encode.ts";
import { open, type Seal, seal } from "../../src/connector/envelope.ts";
import { invocationOf } from "../../src/connector/invocation.ts";
import type { ReplayStore } from "../../src/connector/replay.ts";
import { MemoryReplay } from "../../src/connector/replay_memory.ts";
import { connectionKey } from "../../src/connector/secret.ts";
import { TransportService } from "../../src/connector/service.ts";
import type { CallerConfig, ServiceConfig } from "../../src/connector/service_config.ts";
import { FakeClock } from "../broker/fake_clock.ts";
import { FakeBackend } from "./fake_backend.ts";

export const START_MS = 1_760_000_000_000;
export const HORIZON_MS = 300_000;
export const RETENTION_MS = 86_400_000;

export const ALPHA: CallerConfig = {
  caller_runtime_id: "caller-alpha",
  connection_secret: "alpha-connection-secret-0123456789abcdef",
  allowed_models: [
    "fake-echo",
    "fake-tool",
    "fake-cut",
    "fake-limit",
    "fake-throw",
    "fake-invalid",
    "fake-huge",
  ],
  max_concurrent_requests: 2,
  max_payload_bytes: 16_384,
  max_output_tokens: 1024,
};

export const BETA: CallerConfig = {
  caller_runtime_id: "caller-beta",
  connection_secret: "beta-connection-secret-0123456789abcdefg",
  allowed_models: ["fake-echo"],
  max_concurrent_requests: 1,
  max_payload_bytes: 4096,
  max_output_tokens: 256,
};

export const CONFIG: ServiceConfig = {
  bind: "127.0.0.1",
  max_frame_bytes: 23_192,
  max_connections: 8,
  socket_timeout_ms: 2000,
  expiry_horizon_ms: HORIZON_MS,
  retention_ms: RETENTION_MS,
  callers: [ALPHA, BETA],
};

export function keyOf(caller: CallerConfig): Buffer {
  const key = connectionKey(caller.connection_secret);
  if (!key.ok) throw new Error(key.fault);
  return key.value;
}

export interface Wanted extends Partial<ProviderRequest> {
  readonly caller?: CallerConfig;
  readonly expiresAtUnixMs?: number;
}

export function invocation({
  caller = ALPHA,
  expiresAtUnixMs,
  ...request
}: Wanted = {}): TransportInvocation {
  return invocationOf({
    caller: caller.caller_runtime_id,
    expiresAtUnixMs: expiresAtUnixMs ?? START_MS + 60_000,
    request: {
      request_id: "request-0001",
      conversation_id: "conversation-1",
      model: "fake-echo",
      instructions: "Be short.",
      input: [{ UserText: { text: "What is on the table?" } }],
      reasoning_effort: null,
      output_format_name: null,
      tools: [],
      tool_choice: "auto",
      parallel_tool_calls: false,
      output_schema_json: null,
      max_output_tokens: 100,
      ...request,
    },
  });
}

export interface SealedBy extends Partial<Omit<Seal, "caller">> {
  readonly caller?: CallerConfig;
  /** In the carriage; else the envelope's. */
  readonly messageId?: string;
}

/** A request frame around whatever bytes; what is not said is as an honest caller has it. */
export function frameOf(plaintext: Buffer, { caller = ALPHA, messageId, ...rest }: SealedBy = {}): Buffer {
  const requestId = rest.requestId ?? "request-0001";
  const key = keyOf(caller);
  const sealed: Seal = {
    key,
    requestId,
    kind: "Invocation",
    nonce: randomBytes(12),
    ...rest,
    caller: caller.caller_runtime_id,
  };
  return encodeRequestFrame(messageId ?? requestId, seal(sealed, plaintext));
}

export function bytesOf(invocation: TransportInvocation): Buffer {
  const bytes = encode(TRANSPORT_INVOCATION, invocation);
  if (bytes === undefined) throw new Error("no valid invocation");
  return bytes;
}

/** As an honest caller would ask. */
export function request(wanted: Wanted = {}): Buffer {
  const asked = invocation(wanted);
  const caller = wanted.caller ?? ALPHA;
  return frameOf(bytesOf(asked), { caller, requestId: asked.request.request_id });
}

export function envelopeOf(reply: Buffer): TransportEnvelope {
  const envelope = decode(TRANSPORT_ENVELOPE, decodeResponseFrame(reply)?.envelope ?? Buffer.alloc(0));
  if (envelope === undefined) throw new Error("no envelope");
  return envelope;
}

export function resultOf(reply: Buffer, caller = ALPHA): TransportResult {
  const plaintext = open(envelopeOf(reply), keyOf(caller));
  const result = plaintext && decode(TRANSPORT_RESULT, plaintext);
  if (result === undefined) throw new Error("no sealed result");
  return result;
}

/** `dropped`, `refused Expired`, `Completed`, `Failed TimedOut`. */
export function wordsOf(reply: Buffer | undefined, caller = ALPHA): string {
  if (reply === undefined) return "dropped";
  const { disposition } = resultOf(reply, caller);
  if ("Refused" in disposition) return `refused ${disposition.Refused}`;
  const { outcome } = disposition.Transported.receipt;
  return "Failed" in outcome ? `Failed ${outcome.Failed.failure_kind}` : "Completed";
}

export type Line = LogFields & { readonly event: string };

export class ServiceRig {
  readonly clock = new FakeClock(START_MS);
  readonly fake = new FakeBackend();
  backend: ProviderBackend = this.fake;
  store: ReplayStore = new MemoryReplay();
  readonly lines: Line[] = [];
  service!: TransportService;

  static async open(config: Partial<ServiceConfig> = {}): Promise<ServiceRig> {
    const rig = new ServiceRig();
    await rig.open(config);
    return rig;
  }

  /** Another service over the same store: what ran in the one before is lost. */
  async open(config: Partial<ServiceConfig> = {}, clock: Clock = this.clock): Promise<void> {
    const opened = await TransportService.open({
      config: { ...CONFIG, ...config },
      backend: this.backend,
      store: async () => ok(this.store),
      clock,
      random: randomBytes,
      log: (_, event, fields) => this.lines.push({ ...fields, event }),
    });
    if (!opened.ok) throw new Error(JSON.stringify(opened.fault));
    this.service = opened.value;
  }

  deliver(frame: Buffer): Promise<Buffer | undefined> {
    return this.service.deliver(frame);
  }

  /** What comes of it, in words. */
  async tell(frame: Buffer, caller = ALPHA): Promise<string> {
    return wordsOf(await this.deliver(frame), caller);
  }

  async ask(wanted: Wanted = {}): Promise<string> {
    return this.tell(request(wanted), wanted.caller);
  }

  /** Resolves once the backend has the turn, which it holds. */
  async begin(wanted: Wanted = {}): Promise<{ readonly reply: Promise<Buffer | undefined> }> {
    this.fake.held = true;
    const entered = this.fake.entered();
    const reply = this.deliver(request(wanted));
    await entered;
    this.fake.held = false;
    return { reply };
  }
}
