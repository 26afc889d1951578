// The entry `callgate/connector/service`: what answers under the model connector's contract, for whoever has a backend of
// their own. It loads the store's engine; what a caller needs is in `callgate/connector`. What is not exported here may
// change at any time.

export type { Result } from "./base/faults.ts";
export type { Clock, Log, LogFields, LogLevel } from "./base/ports.ts";
export type { ProviderBackend, ProviderTurn } from "./connector/backend.ts";
export type { ReplayHead, ReplayRecord, ReplayStore } from "./connector/replay.ts";
export { MemoryReplay } from "./connector/replay_memory.ts";
export { type ConnectorServer, type ServeOptions, serve } from "./connector/serve.ts";
export {
  type Dropped,
  type ServiceFigures,
  type ServiceOptions,
  TransportService,
} from "./connector/service.ts";
export { type CallerConfig, FRAME_BYTES_CEILING, type ServiceConfig } from "./connector/service_config.ts";
export { type StartError, startErrorSentence } from "./connector/start_error.ts";
export { systemClock, wallClock } from "./host/clock.ts";
export { openReplayStore, type ReplayStoreOptions } from "./host/connector_replay.ts";
export { type Libc, loadLibc } from "./host/libc.ts";
