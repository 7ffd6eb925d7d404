// Gives a visitor without cookies the ids of the day, the same ids that the visitor's events get. Source:
// docs/wire/evaluation.md 1.7; docs/wire/ingestion.md 13.

import { findRootDomain } from '#core/cookieless/root-domain.ts'
import { normalizeVisitorAddress } from '#core/cookieless/visitor-address.ts'
import { findVisitorDay } from '#core/cookieless/visitor-day.ts'
import {
  buildHashedDeviceId,
  buildHashedDistinctId,
  computeVisitorHash,
  encodeVisitorHash,
  hashIdentifiedVisitor,
  truncateUserAgent,
} from '#core/cookieless/visitor-hash.ts'
import type { CookielessRequest, RequestVisitor } from '#core/flags/evaluation/evaluation-request.ts'
import { type MaybePromise, mapMaybePromise } from '#core/maybe-promise.ts'
import type { Project } from '#core/project.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { CookielessVisitors } from '#ports/state/cookieless-visitors.ts'
import type { DailySalts } from '../shared/daily-salts.ts'
import type { SubjectRequest } from './load-subject.ts'
import type { Loaded, StoreCircuitBreaker } from './store-circuit-breaker.ts'

export type MissingVisitorPart = 'ip' | 'host' | 'user_agent'

export type VisitorHashFailure =
  | { readonly kind: 'missing_property'; readonly property: MissingVisitorPart }
  | { readonly kind: 'visitor_unknown' }

export interface VisitorHasherOptions {
  readonly salts: Pick<DailySalts, 'saltOf'>
  readonly visitors: CookielessVisitors
  readonly saltReads: StoreCircuitBreaker
  /** The guard of the store that `visitors` reads. */
  readonly reads: StoreCircuitBreaker
}

type Hashed = Result<SubjectRequest, VisitorHashFailure>

/**
 * @returns a function that gives the request the visitor's ids, or leaves it unchanged if the project has switched
 *   this off. It never rejects because a store is down.
 */
export function createVisitorHasher({ salts, visitors, saltReads, reads }: VisitorHasherOptions) {
  return (
    project: Project,
    request: SubjectRequest,
    { timezone, extra }: CookielessRequest,
    shown: RequestVisitor,
    nowMs: number,
  ): MaybePromise<Hashed> => {
    const mode = project.ingestion.cookielessMode
    if (mode === 0) return ok(request)
    const root = findRootDomain(shown.host)
    const missing = findMissingPart(shown, root)
    if (missing !== null) return err({ kind: 'missing_property', property: missing })

    const address = normalizeVisitorAddress(shown.address)
    const parts = { projectId: project.id, address, userAgent: truncateUserAgent(shown.userAgent), extra }
    const { day } = findVisitorDay(nowMs, timezone, project.timezone)
    return continueWhenLoaded(
      saltReads.run(() => salts.saltOf(day)),
      salt => {
        const hash = computeVisitorHash(salt, parts, root)
        const toIdentified = (identifies: number): Hashed => {
          const distinctId = buildHashedDistinctId(encodeVisitorHash(hashIdentifiedVisitor(salt, hash, identifies)))
          return ok({
            ...request,
            distinctId,
            deviceId: request.deviceId ?? buildHashedDeviceId(encodeVisitorHash(hash)),
          })
        }
        if (mode === 1) return toIdentified(0)
        return continueWhenLoaded(
          reads.run(() => visitors.countIdentifies(project.id, encodeVisitorHash(hash))),
          toIdentified,
        )
      },
    )
  }
}

function findMissingPart({ address, userAgent }: RequestVisitor, root: string): MissingVisitorPart | null {
  if (address === '') return 'ip'
  if (root === '') return 'host'
  return userAgent === '' ? 'user_agent' : null
}

function continueWhenLoaded<T>(
  loaded: MaybePromise<Loaded<T>>,
  next: (value: T) => MaybePromise<Hashed>,
): MaybePromise<Hashed> {
  return mapMaybePromise(loaded, value => (value.ok ? next(value.value) : err({ kind: 'visitor_unknown' } as const)))
}
