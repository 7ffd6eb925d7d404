/** Why a request got no answer, for people: `fetch` itself says only "fetch failed". */
export function describeMissingAnswer(cause: unknown): string {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  if (!(inner instanceof Error)) return String(inner)
  const { code } = inner as NodeJS.ErrnoException
  // OpenSSL's own message would not help: it only has a thread number and a line of OpenSSL's source.
  if (code === 'ERR_SSL_WRONG_VERSION_NUMBER') return 'the server does not use TLS; try http:// instead of https://'
  return inner.message || code || inner.name
}
