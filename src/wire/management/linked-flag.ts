// A flag as shown inside its owner: a feature, a survey, an experiment.

import Type, { type Static } from 'typebox'
import { redactEncryptedPayloads } from '#core/flags/definitions/encrypted-payloads.ts'
import type { Flag } from '#core/flags/definitions/flag.ts'
import { jsonObjectSchema, nullable } from './shapes.ts'

export const linkedFlagSchema = Type.Object({
  id: Type.Integer(),
  key: Type.String(),
  name: Type.String(),
  filters: nullable(jsonObjectSchema('Null if the key may not read flags.')),
  active: Type.Boolean(),
  deleted: Type.Boolean(),
  ensure_experience_continuity: Type.Boolean(),
  version: Type.Integer(),
})
export type LinkedFlagJson = Static<typeof linkedFlagSchema>

/** @returns null when there is no flag. @param showsFilters whether the key may read flags. */
export function encodeLinkedFlag(flag: Flag | null, showsFilters: boolean): LinkedFlagJson | null {
  if (flag === null) return null
  const { id, key, name, active, deleted, version } = flag
  return {
    id,
    key,
    name,
    filters: showsFilters ? redactEncryptedPayloads(flag) : null,
    active,
    deleted,
    ensure_experience_continuity: flag.ensureExperienceContinuity,
    version,
  }
}
