// The result of a fetch, as the later stages read it.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type FetchedPart, FetchState, toStateDamage } from './fetch-state.ts'

export type { FetchedPart } from './fetch-state.ts'

export interface FetchedParts {
  /** The configuration that the folder is bound to, for `parseFetchConfig`. */
  readonly config: unknown
  /** Whether every part of the source's last listing has been fetched. */
  readonly isComplete: boolean
  readonly partsWaiting: number
  readonly partsEmpty: number
  /** Warnings that were shown to the user. */
  readonly warnings: readonly string[]
  /** Oldest first. */
  readonly parts: readonly FetchedPart[]
}

/**
 * @returns null if no fetch was started in the folder.
 * @throws JobStopped if the state in the folder is damaged.
 */
export function readFetchedParts(folder: string): FetchedParts | null {
  if (!existsSync(join(folder, 'fetch.db'))) return null
  const state = new FetchState(folder)
  try {
    const config = state.config()
    if (config === null) return null
    const { waiting: partsWaiting, empty: partsEmpty } = state.counts()
    const parts = [...state.fetchedParts()]
    const warnings = [...new Set(state.warnings().map(({ line }) => line))]
    return { config: JSON.parse(config), isComplete: state.isComplete(), partsWaiting, partsEmpty, warnings, parts }
  } catch (error) {
    throw toStateDamage(folder, error)
  } finally {
    state.close()
  }
}
