// Distinguishes a damaged SQLite file from one that cannot be written, and from a disk that fails or is full.

/** SQLITE_ERROR counts as damage because statements fail with it on a file with other tables. */
export function isSqliteDamage(error: unknown): boolean {
  return hasCode(error, /^SQLITE_(NOTADB|CORRUPT|ERROR)/)
}

/** The file beside a WAL has a code of its own if there is no space to create it. */
export function isSqliteDiskFull(error: unknown): boolean {
  return hasCode(error, /^SQLITE_(FULL|IOERR_SHMSIZE)/)
}

export function isNotWritable(error: unknown): boolean {
  return hasCode(error, /^SQLITE_(READONLY|CANTOPEN)/)
}

function hasCode(error: unknown, codes: RegExp): boolean {
  return error instanceof Error && codes.test(String((error as { readonly code?: unknown }).code))
}
