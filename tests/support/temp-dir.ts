import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** A folder of the test's own, removed when the test ends. */
export function tempDir(t: Pick<TestContext, 'after'>): string {
  const folder = mkdtempSync(join(tmpdir(), 'pennon-test-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
