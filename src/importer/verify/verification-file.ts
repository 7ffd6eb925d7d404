// Reads `verify.json`, the result of the last verification. Source: docs/wire/import.md §2.10.

import type { JobFolder } from '../job/job-folder.ts'
import { jsonObject, Type } from '../records/file-schema.ts'
import { type Verification, verifyFile } from './verify-stage.ts'

const count = Type.Number()

export const verificationSchema = Type.Object({
  v: Type.Literal(1),
  verified_at: Type.String(),
  ok: Type.Boolean(),
  expected_rows: count,
  stored_rows: count,
  checks: Type.Array(
    Type.Object({
      name: Type.Enum(['day_event_counts', 'id_buckets', 'random_events', 'live_data']),
      state: Type.Enum(['equal', 'differs', 'not_checked']),
      compared: count,
      differences: Type.Array(Type.String()),
    }),
  ),
  notes: Type.Array(Type.Object({ reason: Type.String(), count, samples: Type.Array(jsonObject) })),
})

/** @returns null before the first verification. */
export function readVerification(folder: JobFolder): Verification | null {
  return folder.readJson(verifyFile, verificationSchema)
}
