// Where on the page a person is: `#/PAGE/WORD/WORD`, each word percent-encoded, since sessions' names are
// their callers' and may hold anything.

export interface Route {
  readonly page: string;
  readonly words: readonly string[];
}

export function routeOf(hash: string): Route {
  const [page = "", ...words] = hash
    .replace(/^#\/?/, "")
    .split("/")
    .filter((word) => word !== "")
    .map(decoded);
  return { page, words };
}

/** The other way, for `href`. */
export function addressOf(page: string, ...words: readonly string[]): string {
  return `#/${[page, ...words].map(encodeURIComponent).join("/")}`;
}

function decoded(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}
