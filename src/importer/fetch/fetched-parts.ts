// What the stages after the fetch read of it.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { asStateDamage, type FetchedPart, FetchState } from './fetch-state.ts'

export type { FetchedPart } from './fetch-state.ts'

export interface FetchedParts {
  /** What the folder was begun with, as `parseFetchConfig` takes it. */
  readonly config: unknown
  /** Whether all of it came: nothing is left, as the source listed its parts last. */
  readonly isComplete: boolean
  readonly partsWaiting: number
  readonly partsEmpty: number
  /** Warnings that were shown to the user. */
  readonly warnings: readonly string[]
  /** Oldest first. */
  readonly parts: readonly FetchedPart[]
}

/**
 * @returns null for a folder into which nothing was fetched.
 * @throws JobStopped for one whose state is damaged.
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
    throw asStateDamage(folder, error)
  } finally {
    state.close()
  }
}
