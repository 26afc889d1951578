// Every bound of the files provider, with its default. Not the broker's: those hold as well.

export interface FilesLimits {
  /**
   * Bytes of UTF-8 of one result's content. JSON writes a byte with six at worst (`\u0001`), and
   * six times the default is still within a frame (1,048,576) with its envelope.
   */
  readonly contentBytesMax: number;
  /** Bytes of UTF-8 of one file that is written. */
  readonly writeBytesMax: number;
  /** Names read of one directory that is listed. */
  readonly listNamesMax: number;
  readonly search: SearchLimits;
}

export interface SearchLimits {
  /** Names visited, of files and directories together. */
  readonly entriesMax: number;
  /** Directories beneath the one that is searched. */
  readonly depthMax: number;
  /** Bytes of contents read. */
  readonly bytesMax: number;
  /** Contents of larger files are not searched. */
  readonly fileBytesMax: number;
  readonly matchesMax: number;
  readonly matchesPerFileMax: number;
  /** Characters shown of a line that matches. */
  readonly lineCharsMax: number;
  /** Searches that run at the same time; one more is told to come back. */
  readonly atOnceMax: number;
}

export const FILES_LIMITS: FilesLimits = {
  contentBytesMax: 163_840,
  writeBytesMax: 1_048_576,
  listNamesMax: 10_000,
  search: {
    entriesMax: 50_000,
    depthMax: 32,
    bytesMax: 67_108_864,
    fileBytesMax: 4_194_304,
    matchesMax: 500,
    matchesPerFileMax: 20,
    lineCharsMax: 240,
    atOnceMax: 2,
  },
};
