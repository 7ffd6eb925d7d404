import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endProcessesIn } from './processes-in-folders.ts'

/** The scope at whose end to clean up: a test, a suite (as `{ after }` of node:test), or a part of one. */
export interface Scope {
  after(end: () => void | Promise<void>): void
}

/**
 * Makes a folder that is removed at the end of its scope. Processes that work in it (an instance, an engine) are ended
 * first, even if a test threw.
 */
export function tempDir(t: Scope): string {
  const folder = mkdtempSync(join(tmpdir(), 'pennon-test-'))
  t.after(() => removeFolder(folder))
  return folder
}

/** Ends the processes that work in the folder, then removes it. */
export async function removeFolder(folder: string): Promise<void> {
  await endProcessesIn(folder)
  // Children of a killed process may write for another moment.
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
}
