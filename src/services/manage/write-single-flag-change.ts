// Makes a single change to a flag, as one new version. Whether the flag allows the change is decided from the flag as it
// was read, and the change is written only while that version is the newest; the other definitions are checked at the time
// of the write. `core/flags/definitions/single-flag-changes.ts` has the changes. Source: docs/wire/private-api.md 4.2.

import type { Change } from '#core/author.ts'
import { type DefinitionLinks, listFlagDependencies } from '#core/flags/definitions/definition-links.ts'
import { redactEncryptedPayloads } from '#core/flags/definitions/encrypted-payloads.ts'
import type { Flag } from '#core/flags/definitions/flag.ts'
import type { FlagChangeRefusal, SingleFlagChange } from '#core/flags/definitions/single-flag-changes.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Clock } from '#ports/clock.ts'
import type { FlagStore } from '#ports/state/flag-store.ts'
import {
  type FlagRefusal,
  type ManageFlagsDeps,
  type PreparedChange,
  prepareChange,
  type WrittenFlag,
  writeFlagWithRetry,
} from './manage-flags.ts'
import { type FlagDependent, listFlagDependents } from './retire-flags.ts'

export interface SingleFlagChangeDeps extends ManageFlagsDeps {
  readonly clock: Clock
  readonly management: ManageFlagsDeps['management'] & Pick<FlagStore, 'listFlagsById' | 'listFlagUses'>
}

export type SingleFlagChangeRefusal =
  | FlagRefusal
  | ({ readonly kind: 'refused' } & FlagChangeRefusal)
  | { readonly kind: 'in_use'; readonly by: readonly FlagDependent[] }

/** Definitions that prevent a change of a flag; null when none does. */
export type Obstacle = (
  deps: SingleFlagChangeDeps,
  flag: Flag,
  links: DefinitionLinks,
) => Promise<SingleFlagChangeRefusal | null>

export interface SingleFlagChangeOptions {
  /** The version that the caller saw; without it, the change applies to the newest version. */
  readonly sentVersion?: number
  readonly obstacle?: Obstacle
  readonly change: Change
}

/** If the flag already has the state that the change leads to, writes nothing and returns the flag. */
export function writeSingleFlagChange(
  deps: SingleFlagChangeDeps,
  flag: Flag,
  decide: SingleFlagChange,
  options: SingleFlagChangeOptions,
): Promise<Result<WrittenFlag, SingleFlagChangeRefusal>> {
  const { sentVersion, obstacle, change } = options
  const prepare = async (
    read: Flag,
  ): Promise<Result<PreparedChange<SingleFlagChangeRefusal>, SingleFlagChangeRefusal>> => {
    if (read.deleted) return err(isDeleted)
    if (sentVersion !== undefined && sentVersion !== read.version)
      return err({ kind: 'stale_version', sentVersion, current: read })
    const changed = decide(read)
    if (!changed.ok) return err({ kind: 'refused', ...changed.error })
    const { filters } = changed.value
    // Payloads that are stored encrypted would be encrypted again; the marker keeps them unchanged.
    const kept = filters && { filters: redactEncryptedPayloads({ ...read, filters }) }
    const whole = { expectedVersion: read.version, skipValidation: false }
    const prepared = await prepareChange(deps, read, { ...changed.value, ...kept }, whole)
    const changesNothing = Object.keys(changed.value).length === 0
    if (!prepared.ok || obstacle === undefined || changesNothing) return prepared
    return ok({ ...prepared.value, refuse: links => obstacle(deps, read, links) })
  }
  return writeFlagWithRetry(deps, flag, prepare, { expectedVersion: sentVersion, skipValidation: false, change })
}

/** Active flags that depend on the flag. */
export const activeDependents: Obstacle = async ({ management }, flag, links) => {
  const dependenciesOf = listFlagDependencies(links)
  const ids = links.flags.map(({ id }) => id).filter(id => dependenciesOf(id).includes(flag.id))
  const active = (await management.listFlagsById(flag.projectId, ids)).filter(found => found.active)
  const message = 'Cannot disable this feature flag because other flags depend on it'
  return active.length === 0 ? null : createFlagsRefusal(message, active)
}

/** Inactive flags that the flag depends on. */
export const disabledDependencies: Obstacle = async ({ management }, flag, links) => {
  const found = await management.listFlagsById(flag.projectId, listFlagDependencies(links)(flag.id))
  const off = found.filter(({ active, deleted }) => !active || deleted)
  return off.length === 0
    ? null
    : createFlagsRefusal('Cannot enable this feature flag because it depends on disabled flags', off)
}

/** Active flags that depend on the flag, or anything else that uses it. */
export const anyUse: Obstacle = async (deps, flag, links) => {
  const dependents = await activeDependents(deps, flag, links)
  if (dependents !== null) return dependents
  const by = (await listFlagDependents(deps, flag.projectId, links, [flag.id], 'archive')).get(flag.id)!
  return by.length === 0 ? null : { kind: 'in_use', by }
}

const isDeleted = createRefusal('This feature flag has been deleted.')

/** Flags that are named in a refusal; a project may have thousands. */
const namedMax = 20

function createFlagsRefusal(message: string, flags: readonly Flag[]): SingleFlagChangeRefusal {
  const named = [...flags].sort((a, b) => a.id - b.id).map(({ key, id }) => `${key} (ID: ${id})`)
  const more = named.length > namedMax ? [`${named.length - namedMax} more`] : []
  return createRefusal(`${message}: ${[...named.slice(0, namedMax), ...more].join(', ')}.`)
}

function createRefusal(message: string): SingleFlagChangeRefusal {
  return { kind: 'refused', code: 'invalid_input', attr: null, message }
}
