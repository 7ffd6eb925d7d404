import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endProcessesIn } from './processes-in-folders.ts'

/**
 * A folder of a test's own, or (with `{ after }` of node:test) of a suite's, removed when that ends. What works in it (an
 * instance, an engine) is ended first, whatever threw.
 */
export function tempDir(t: { after(remove: () => void | Promise<void>): void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'pennon-test-'))
  t.after(() => removeFolder(folder))
  return folder
}

/** Ends what works in the folder, then removes it. */
export async function removeFolder(folder: string): Promise<void> {
  await endProcessesIn(folder)
  // Children of a process that was killed may write for a moment longer.
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
}
