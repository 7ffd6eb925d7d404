import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder of a test's own, or (with `{ after }` of node:test) of a suite's, removed when that ends. */
export function tempDir(t: { after(remove: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'pennon-test-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
