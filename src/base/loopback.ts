// Whether a URL can lead to another machine. Invariant: what is not certain to stay here counts as leaving.

/** Of the host of a parsed URL. No name but `localhost`: any other may resolve to anything. */
export function isLoopbackHost(hostname: string): boolean {
  return /^(?:localhost|127(?:\.[0-9]+){3}|\[::1\])$/.test(hostname);
}
