// The constants of the model connector's contract (spec: connector, 1).

export const IDENTITY_BYTES_MAX = 256;
/** Of a name and of a call id. */
export const NAME_BYTES_MAX = 64;
export const FAILURE_MESSAGE_BYTES_MAX = 1024;
/** The largest integer that every implementation holds exactly. */
export const INTEGER_MAX = 2 ** 53 - 1;
export const OUTPUT_TOKENS_MAX = 2 ** 32 - 1;
/** Objects and arrays open at once in a text that a document holds, its top counted. */
export const JSON_DEPTH_MAX = 64;
export const DIGEST_BYTES = 32;
export const NONCE_BYTES = 12;
export const TAG_BYTES = 16;
export const PAYLOAD_BYTES_MIN = 4096;
export const FRAME_BYTES_MAX = 2 ** 32 - 1;
export const SECRET_BYTES_MIN = 32;
export const SECRET_BYTES_MAX = 1024;
export const SERVICE_ID = "gamecult.model.connector";
export const OPERATION = "invoke";
