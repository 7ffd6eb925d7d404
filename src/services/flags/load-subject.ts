// Loads what the flags of one request may read of the subject, before any flag is evaluated. It is synchronous when the
// stores answer at once, and bounded in time otherwise. What cannot be loaded is replaced by an error value.

import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import type { EvaluationRequest } from '#core/flags/evaluation/evaluation-request.ts'
import {
  type EvaluationSubject,
  type HashKeyOverrides,
  noGroupRows,
  noStaticCohorts,
  readUsableGroupKey,
} from '#core/flags/evaluation/evaluation-subject.ts'
import { type FlagNeeds, needsGroupRow, needsStoredPerson } from '#core/flags/evaluation/flag-needs.ts'
import { toEvaluationProperties } from '#core/geoip.ts'
import { getOwnValue, type PropertyBag } from '#core/json.ts'
import type { MaybePromise } from '#core/maybe-promise.ts'
import { ok } from '#core/result.ts'
import type { Geoip } from '#ports/geoip.ts'
import type { SubjectPerson, SubjectStore } from '#ports/state/subject-store.ts'
import type { createHashKeyLoader } from './load-hash-keys.ts'
import type { Loaded, StoreCircuitBreaker } from './store-circuit-breaker.ts'

export interface LoadSubjectOptions {
  readonly subjects: SubjectStore
  /** The guard of `subjects`. */
  readonly reads: StoreCircuitBreaker
  /** Created by `createHashKeyLoader`. */
  readonly loadHashKeys: ReturnType<typeof createHashKeyLoader>
  /** Null without a database of locations. */
  readonly geoip: Geoip | null
}

/** A request whose subject is known to have an id. */
export type SubjectRequest = EvaluationRequest & { readonly distinctId: string }

type Asked = Pick<EvaluationSubject, 'personProperties' | 'groupProperties' | 'geoip' | 'distinctId' | 'groups'>

/**
 * @param needs the needs of the flags to be evaluated; nothing else is loaded.
 * @returns a function that never rejects because a store is down.
 */
export function createSubjectLoader(
  options: LoadSubjectOptions,
): (
  project: CompiledProject,
  needs: FlagNeeds,
  request: SubjectRequest,
  nowMs: number,
) => MaybePromise<EvaluationSubject> {
  const { subjects, reads, loadHashKeys } = options

  return (project, needs, request, nowMs) => {
    const asked = readRequestSubject(project, request)
    const person = loadPerson(project, needs, request, asked)
    const groupRows = loadGroupRows(project, needs, asked)
    const staticCohorts = loadStaticCohorts(project, needs, request)
    const hashKeys = loadHashKeys(project, needs, request)
    const subjectOf = (
      loadedPerson: EvaluationSubject['person'],
      loadedRows: EvaluationSubject['groupRows'],
      staticCohortIds: EvaluationSubject['staticCohortIds'],
      hashKeyOverrides: HashKeyOverrides,
    ): EvaluationSubject => {
      return {
        ...asked,
        anonDistinctId: request.anonDistinctId,
        deviceId: request.deviceId,
        person: loadedPerson,
        groupRows: loadedRows,
        hashKeyOverrides,
        staticCohortIds,
        nowMs,
      }
    }
    return person instanceof Promise ||
      groupRows instanceof Promise ||
      staticCohorts instanceof Promise ||
      hashKeys instanceof Promise
      ? Promise.all([person, groupRows, staticCohorts, hashKeys]).then(loaded => subjectOf(...loaded))
      : subjectOf(person, groupRows, staticCohorts, hashKeys)
  }

  /** What the request itself says about the subject. */
  function readRequestSubject(project: CompiledProject, request: SubjectRequest): Asked {
    const { distinctId, groups, personProperties, groupProperties, geoipAddress } = request
    const location = project.readsGeoip && geoipAddress !== '' ? options.geoip?.lookUp(geoipAddress) : null
    const geoip = location ? toEvaluationProperties(location) : null
    return { groups, personProperties, groupProperties, geoip, distinctId }
  }

  function loadPerson(
    project: CompiledProject,
    needs: FlagNeeds,
    request: SubjectRequest,
    asked: Asked,
  ): MaybePromise<Loaded<SubjectPerson | null>> {
    if (request.onlyUseOverridePersonProperties || !needsStoredPerson(needs, asked)) return nobody
    return reads.run(() => subjects.findPerson(project.project.id, asked.distinctId, () => project.personKeys.names()))
  }

  /** Members are stored persons, so the subject of a request that ignores stored data is not in any static cohort. */
  function loadStaticCohorts(
    project: CompiledProject,
    needs: FlagNeeds,
    request: SubjectRequest,
  ): MaybePromise<EvaluationSubject['staticCohortIds']> {
    if (request.onlyUseOverridePersonProperties || !needs.staticCohorts) return noStaticCohorts
    return reads.run(() => subjects.findStaticCohorts(project.project.id, request.distinctId))
  }

  function loadGroupRows(
    project: CompiledProject,
    needs: FlagNeeds,
    asked: Asked,
  ): MaybePromise<EvaluationSubject['groupRows']> {
    if (needs.groupKeys.size === 0) return noGroupRows
    const rows = new Map<number, Loaded<PropertyBag | null>>()
    const waits: Promise<void>[] = []
    for (const [typeIndex, wanted] of needs.groupKeys) {
      const typeName = project.groupTypeNames[typeIndex]
      const key = typeName === undefined ? '' : readUsableGroupKey(getOwnValue(asked.groups, typeName))
      if (key === '' || !needsGroupRow(needs, typeIndex, typeName!, asked)) continue
      const found = reads.run(() => subjects.findGroup(project.project.id, typeIndex, key, () => wanted))
      const setRow = (loaded: Loaded<{ properties: PropertyBag } | null>) => {
        rows.set(typeIndex, loaded.ok ? ok(loaded.value?.properties ?? null) : loaded)
      }
      if (found instanceof Promise) waits.push(found.then(setRow))
      else setRow(found)
    }
    return waits.length === 0 ? rows : Promise.all(waits).then(() => rows)
  }
}

const nobody: Loaded<null> = ok(null)
