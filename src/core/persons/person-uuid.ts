// A person's uuid derives from its distinct id, so that every worker computes the same one.

import { uuidV5 } from '../events/uuid-v5.ts'

/** Source: docs/wire/ingestion.md 6.3. */
const personNamespace = Buffer.from('932979b465c3442484670b66ec27bc22', 'hex')

/** UUIDv5 of `<project id>:<distinct id>`. Source: docs/wire/ingestion.md 6.3; vectors. */
export function personUuid(projectId: number, distinctId: string): string {
  return uuidV5(personNamespace, `${projectId}:${distinctId}`)
}
