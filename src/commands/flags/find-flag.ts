// Finds a flag by key or id, or suggests the key that was probably meant.

import { findIntendedName } from '#core/nearest-name.ts'
import { ClientError, type PrivateApi } from '../client/private-api.ts'

/** The most keys that an unknown key is compared with. */
const comparedFlagsMax = 5_000

/** The path of a flag below the project. */
export function buildFlagPath(flag: string, rest = ''): string {
  return `/feature_flags/${encodeURIComponent(flag)}/${rest}`
}

/** Runs a request about a flag. @throws ClientError; for an unknown flag, with the nearest key. */
export async function requestWithFlagHint<T>(api: PrivateApi, flag: string, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    if (!(error instanceof ClientError && error.status === 404)) throw error
    // If the project, not the flag, is unknown, this call throws.
    const flags = await api.list('/feature_flags/', {}, comparedFlagsMax)
    const keys = flags.map(({ key }) => String(key))
    throw new ClientError(`There is no flag ${flag} in this project. ${suggestFlag(flag, keys)}`, { status: 404 })
  }
}

/** @param keys the keys of all flags. */
export function suggestFlag(flag: string, keys: readonly string[]): string {
  if (keys.length === 0) return 'The project has no flags.'
  const near = findIntendedName(flag, keys) ?? keys.find(key => flag !== '' && key.includes(flag))
  const guess = near === undefined ? '' : `Did you mean ${near}? `
  return `${guess}To list all flags: pennon flags list. Deleted flags are found by id only.`
}
