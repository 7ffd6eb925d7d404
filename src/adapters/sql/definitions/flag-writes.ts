// Writes flags together with something else: the caller's transaction stores all of it or nothing.

import type { Kysely } from 'kysely'
import type { Change } from '#core/author.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { FlagWrite, FlagWriteRefusal } from '#ports/state/flag-store.ts'
import type { StateSchema } from '../tables/schema.ts'
import { toStorableFields } from '../tables/storable-text.ts'
import { haveLinksChanged } from './cohort-queries.ts'
import { changeFlag, insertFlag } from './flag-queries.ts'

/** @returns the id of the flag that was written. */
export async function applyFlagWrite(
  trx: Kysely<StateSchema>,
  projectId: number,
  write: FlagWrite,
  change: Change,
): Promise<Result<number, FlagWriteRefusal>> {
  if (await haveLinksChanged(trx, projectId, write)) return err('definitions_changed')
  if (write.kind === 'create') {
    const inserted = await insertFlag(trx, toStorableFields(write.flag), change, write.hasExperiment)
    return inserted.ok ? ok(inserted.value.id) : inserted
  }
  const { flagId, expectedVersion } = write
  const changed = await changeFlag(trx, projectId, flagId, toStorableFields(write.patch), change, expectedVersion)
  if (changed.ok) return ok(flagId)
  return err(changed.error === 'key_taken' ? 'key_taken' : 'flag_changed')
}

/** Runs `body` in a transaction, and rolls it back when `body` returns a refusal. */
export async function rollBackIfRefused<T, E>(
  db: Kysely<StateSchema>,
  body: (trx: Kysely<StateSchema>) => Promise<Result<T, E>>,
): Promise<Result<T, E>> {
  let refused: { readonly ok: false; readonly error: E } | undefined
  try {
    return await db.transaction().execute(async trx => {
      const result = await body(trx)
      if (result.ok) return result
      refused = result
      throw new RolledBack()
    })
  } catch (cause) {
    if (cause instanceof RolledBack && refused !== undefined) return refused
    throw cause
  }
}

class RolledBack extends Error {}
