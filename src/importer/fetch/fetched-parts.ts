// What the stages after the fetch read of it.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type FetchedPart, FetchState } from './fetch-state.ts'

export type { FetchedPart } from './fetch-state.ts'

export interface FetchedParts {
  /** What the folder was begun with, as `parseFetchConfig` takes it. */
  readonly config: unknown
  /** Whether nothing is left to be fetched. */
  readonly isComplete: boolean
  readonly partsWaiting: number
  readonly partsEmpty: number
  /** Oldest first. */
  readonly parts: readonly FetchedPart[]
}

/** @returns null for a folder into which nothing was fetched. */
export function readFetchedParts(folder: string): FetchedParts | null {
  if (!existsSync(join(folder, 'fetch.db'))) return null
  const state = new FetchState(folder)
  try {
    const config = state.config()
    if (config === null) return null
    const { waiting, done, empty } = state.counts()
    const isComplete = waiting === 0 && done + empty > 0
    const parts = [...state.fetchedParts()]
    return { config: JSON.parse(config), isComplete, partsWaiting: waiting, partsEmpty: empty, parts }
  } finally {
    state.close()
  }
}
