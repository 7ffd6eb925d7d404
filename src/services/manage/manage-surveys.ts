// Surveys, with the flags that are made for them: one of whom a survey is for, when it has filters, and one of who has not
// answered it yet. Both are on while the survey runs and go with it; everything is written in one transaction.
// Source: docs/wire/evaluation.md 7.5; PostHog's survey API.

import type { Flag } from '#core/flags/definitions/flag.ts'
import { isJsonObject, type JsonObject, type JsonValue, mergeObjects, numberOf, ownValue } from '#core/json.ts'
import { err, ok, type Result } from '#core/result.ts'
import type { Survey } from '#core/surveys/survey.ts'
import { isSurveyRunning, surveyFlagKeys, unansweredFilters } from '#core/surveys/survey-flags.ts'
import type { Clock } from '#ports/clock.ts'
import type { CohortStore } from '#ports/cohort-store.ts'
import type { FlagWrite, FlagWriteRefusal } from '#ports/flag-write.ts'
import type { FlagStore } from '#ports/management-store.ts'
import type { SurveyFlagWrites, SurveyStore } from '#ports/survey-store.ts'
import {
  type Change,
  changeOf,
  checkedChange,
  findLivingFlag,
  relyingOnReferences,
  retryingFlagWrite,
  type Writer,
} from './flag-with-owner.ts'
import { type InvalidFlag, prepareNewFlag } from './manage-flags.ts'

export interface ManageSurveysDeps {
  readonly management: SurveyStore & FlagStore & Pick<CohortStore, 'findLinks'>
  readonly definitionsReady: (revision: number) => Promise<void>
  readonly clock: Clock
  readonly newUuid: () => string
}

/** What a write may say; what is absent stays, or is the default. */
export interface SurveyFields {
  readonly name?: string
  readonly type?: string
  /** Members of `Survey.content`; those that are not named stay. */
  readonly content?: JsonObject
  readonly linkedFlagId?: number | null
  /** Null makes the survey for everyone again. */
  readonly targetingFilters?: JsonObject | null
  readonly startDateMs?: number | null
  readonly endDateMs?: number | null
  readonly archived?: boolean
}

export type SurveyRefusal =
  | 'not_found'
  | 'no_such_flag'
  /** It would start, and a page would have nothing to ask. */
  | 'no_questions'
  /** It would be linked to a flag that the key may not read. */
  | 'flag_not_readable'
  /** Others kept changing its flags. */
  | FlagWriteRefusal
  /** Its targeting filters. */
  | InvalidFlag

export function createSurvey(
  deps: ManageSurveysDeps,
  projectId: number,
  fields: SurveyFields & { readonly name: string; readonly type: string },
  { by, mayReadFlags }: Writer,
): Promise<Result<Survey, SurveyRefusal>> {
  const { targetingFilters, content = {}, linkedFlagId = null, ...others } = fields
  return retryingFlagWrite<Survey, SurveyRefusal>(async () => {
    const change = { by, nowMs: deps.clock.nowMs() }
    if (linkedFlagId !== null && !mayReadFlags) return err('flag_not_readable')
    if (linkedFlagId !== null && (await findLivingFlag(deps.management, projectId, linkedFlagId)) === null)
      return err('no_such_flag')
    const survey = {
      ...{ startDateMs: null, endDateMs: null, archived: false },
      ...others,
      ...{ id: deps.newUuid(), projectId, linkedFlagId, content: withQuestionIds(content, deps.newUuid) },
      ...{ createdAtMs: change.nowMs, updatedAtMs: change.nowMs, createdBy: by },
    }
    if (hasNothingToAsk(survey)) return err('no_questions')
    const flags = await flagWritesFor(deps, survey, { targeting: null, internal: null }, targetingFilters, change)
    if (!flags.ok) return flags
    const written = await deps.management.createSurvey(survey, flags.value)
    if (!written.ok) return written
    await deps.definitionsReady(written.value.revision)
    return ok(written.value.value)
  })
}

export function updateSurvey(
  deps: ManageSurveysDeps,
  projectId: number,
  id: string,
  fields: SurveyFields,
  { by, mayReadFlags }: Writer,
): Promise<Result<Survey, SurveyRefusal>> {
  const { targetingFilters, content, ...others } = fields
  return retryingFlagWrite<Survey, SurveyRefusal>(async () => {
    const change = { by, nowMs: deps.clock.nowMs() }
    const current = await deps.management.findSurvey(projectId, id)
    if (current === null) return err('not_found')
    const { linkedFlagId } = others
    if (linkedFlagId && linkedFlagId !== current.linkedFlagId && !mayReadFlags) return err('flag_not_readable')
    if (linkedFlagId && (await findLivingFlag(deps.management, projectId, linkedFlagId)) === null)
      return err('no_such_flag')
    const patch = {
      ...others,
      ...(content && { content: withQuestionIds(mergeObjects(current.content, content), deps.newUuid) }),
      ...(targetingFilters === null && { targetingFlagId: null }),
      updatedAtMs: change.nowMs,
    }
    if ((others.startDateMs != null || content !== undefined) && hasNothingToAsk({ ...current, ...patch }))
      return err('no_questions')
    const ownFlags = await flagsOf(deps, current)
    const flags = await flagWritesFor(deps, { ...current, ...patch }, ownFlags, targetingFilters, change)
    if (!flags.ok) return flags
    const written = await deps.management.updateSurvey(projectId, id, patch, flags.value, current)
    if (!written.ok) return written
    await deps.definitionsReady(written.value.revision)
    return ok(written.value.value)
  })
}

/** Its own flags go with it; the one it is linked to stays. */
export function deleteSurvey(
  deps: ManageSurveysDeps,
  projectId: number,
  id: string,
  by: string,
): Promise<Result<null, SurveyRefusal>> {
  return retryingFlagWrite<null, SurveyRefusal>(async () => {
    const change = { by, nowMs: deps.clock.nowMs() }
    const current = await deps.management.findSurvey(projectId, id)
    if (current === null) return err('not_found')
    const { targeting, internal } = await flagsOf(deps, current)
    const deletion = (flag: Flag | null) => (flag === null ? null : changeOf(flag, { deleted: true }, change))
    const flags = { targeting: deletion(targeting), internal: deletion(internal) }
    const written = await deps.management.deleteSurvey(projectId, id, flags, current)
    if (!written.ok) return written
    await deps.definitionsReady(written.value.revision)
    return ok(null)
  })
}

interface OwnFlags {
  readonly targeting: Flag | null
  readonly internal: Flag | null
}

async function flagsOf({ management }: ManageSurveysDeps, survey: Survey): Promise<OwnFlags> {
  const find = (id: number | null) => (id === null ? null : findLivingFlag(management, survey.projectId, id))
  const [targeting, internal] = await Promise.all([find(survey.targetingFlagId), find(survey.internalTargetingFlagId)])
  return { targeting, internal }
}

/** @param targetingFilters undefined to leave them as they are, null to remove them. */
async function flagWritesFor(
  { management }: ManageSurveysDeps,
  survey: Pick<Survey, 'id' | 'projectId' | 'name' | 'content' | 'startDateMs' | 'endDateMs' | 'archived'>,
  own: OwnFlags,
  targetingFilters: JsonObject | null | undefined,
  change: Change,
): Promise<Result<SurveyFlagWrites, InvalidFlag>> {
  const active = isSurveyRunning(survey)
  const keys = surveyFlagKeys(survey.id)
  const prepared = targetingWrite()
  if (!prepared.ok) return prepared
  const targeting =
    prepared.value === null
      ? ok(null)
      : await relyingOnReferences(management, survey.projectId, keys.targeting, prepared.value)
  if (!targeting.ok) return targeting
  const internal = internalWrite()
  return internal.ok ? ok({ targeting: targeting.value, internal: internal.value }) : internal

  function targetingWrite(): Result<FlagWrite | null, InvalidFlag> {
    if (targetingFilters === null)
      return ok(own.targeting === null ? null : changeOf(own.targeting, { deleted: true }, change))
    if (targetingFilters !== undefined) {
      const fields = { filters: targetingFilters, active }
      return own.targeting === null
        ? newFlag(keys.targeting, `Targeting flag for survey ${survey.name}`, fields)
        : checkedChange(own.targeting, fields, change)
    }
    return ok(switched(own.targeting))
  }

  function internalWrite(): Result<FlagWrite | null, InvalidFlag> {
    const filters = unansweredFilters(survey.id, iterationOf(survey.content))
    if (own.internal === null)
      return newFlag(keys.internal, `Targeting flag for survey ${survey.name}`, { filters, active })
    const isSame = JSON.stringify(own.internal.filters) === JSON.stringify(filters)
    return ok(isSame ? switched(own.internal) : changeOf(own.internal, { filters, active }, change))
  }

  function switched(flag: Flag | null): FlagWrite | null {
    return flag === null || flag.active === active ? null : changeOf(flag, { active }, change)
  }

  function newFlag(
    key: string,
    name: string,
    fields: { readonly filters: JsonObject; readonly active: boolean },
  ): Result<FlagWrite, InvalidFlag> {
    const options = { skipValidation: false, by: change.by }
    const prepared = prepareNewFlag(survey.projectId, { key, name, ...fields }, options, change.nowMs)
    return prepared.ok ? ok({ kind: 'create', flag: prepared.value.flag }) : prepared
  }
}

/** The current iteration of a survey that is repeated; the browser looks at the same number. */
function iterationOf(content: JsonObject): number | null {
  const iteration = numberOf(ownValue(content, 'current_iteration') ?? null)
  return iteration !== undefined && iteration > 0 ? iteration : null
}

/** A draft may be without questions, as in PostHog, and so may a survey that an app shows by itself. */
function hasNothingToAsk({ type, content, startDateMs }: Pick<Survey, 'type' | 'content' | 'startDateMs'>): boolean {
  if (type === 'api' || startDateMs === null) return false
  const questions = ownValue(content, 'questions')
  return !Array.isArray(questions) || questions.length === 0
}

/** Answers name their question by its id. One that came without gets one. */
function withQuestionIds(content: JsonObject, newUuid: () => string): JsonObject {
  const questions = ownValue(content, 'questions')
  if (!Array.isArray(questions)) return content
  const withId = (question: JsonValue): JsonValue => {
    if (!isJsonObject(question)) return question
    const id = ownValue(question, 'id')
    return typeof id === 'string' && id !== '' ? question : mergeObjects(question, { id: newUuid() })
  }
  return mergeObjects(content, { questions: questions.map(withId) })
}
