// Flags of version 2, one for each type of value, for clients that read typed values and for those that do not.

import type { JsonObject } from '#core/json.ts'
import { experiment, release, rollout, rulesDocument } from '../support/flag-documents.ts'
import type { Pennon } from '../support/pennon.ts'

const documents: Readonly<Record<string, JsonObject>> = {
  'typed-boolean': rulesDocument('boolean', false, [release(true)]),
  'typed-text': rulesDocument('string', 'red', [rollout('green', 100)]),
  'typed-number': rulesDocument('number', 0, [release(42.5)]),
  'typed-object': rulesDocument('object', {}, [release({ theme: { dark: true } })]),
  'typed-none': rulesDocument('string', null, []),
}

/** Adds `typed-split`, an experiment of two values. */
export async function createTypedFlags({ api }: Pick<Pennon, 'api'>): Promise<void> {
  const flags = '/api/projects/@current/feature_flags/'
  const { id } = await api<{ id: number }>('POST', '/api/projects/@current/experiments/', {
    ...{ name: 'Typed', feature_flag_key: 'of-the-experiment' },
  })
  const split = rulesDocument('string', 'none', [experiment(['blue', 'pink'], { experiment_id: id })])
  for (const [key, filters] of Object.entries({ ...documents, 'typed-split': split }))
    await api('POST', `${flags}?skip_validation=true`, { key, filters, active: true })
}
