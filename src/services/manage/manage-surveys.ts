// Manages surveys and the flags that are made for them: one selects the people a survey is for, if it has filters; another
// selects those who have not answered it yet. Both are on while the survey runs and are deleted with it. Survey and flags
// are written in one transaction. Source: docs/wire/evaluation.md 7.5; PostHog's survey API.

import type { Change } from '#core/author.ts'
import type { Flag } from '#core/flags/definitions/flag.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue, mergeObjects, readJsonNumber } from '#core/json.ts'
import { buildInitialFields, patchItem } from '#core/resource.ts'
import { type Survey, surveyResource } from '#core/resources/survey.ts'
import { err, ok, type Result } from '#core/result.ts'
import { buildSurveyFlagKeys, buildUnansweredSurveyFilters, isSurveyRunning } from '#core/surveys/survey-flags.ts'
import type { FlagStore, FlagWrite, FlagWriteRefusal } from '#ports/state/flag-store.ts'
import type { FlagWrites, ResourceStore } from '#ports/state/resource-store.ts'
import type { ReferenceReader } from './find-reference-issues.ts'
import {
  addReferenceCheck,
  type FlagOwnerDeps,
  findUndeletedFlag,
  prepareCheckedChange,
  prepareCheckedNewFlag,
  toFlagChange,
  type WriterAccess,
  writeDefinitionWithFlags,
} from './flag-with-owner.ts'
import type { InvalidFlag } from './manage-flags.ts'

export interface ManageSurveysDeps extends FlagOwnerDeps {
  readonly management: Omit<ResourceStore, 'listResources'> & Pick<FlagStore, 'findFlag'> & ReferenceReader
  readonly newUuid: () => string
}

/** The fields that a write may set; an absent field stays unchanged, or gets its default in a new survey. */
export type SurveyFields = Partial<Survey> & {
  /** Null makes the survey for everyone again. */
  readonly targetingFilters?: JsonObject | null
}

export type SurveyRefusal =
  | 'not_found'
  | 'no_such_flag'
  /** The survey would start without questions for a page to ask. */
  | 'no_questions'
  /** The survey would be linked to a flag that the key may not read. */
  | 'flag_not_readable'
  /** Other writers repeatedly changed the survey's flags first. */
  | FlagWriteRefusal
  /** The survey's targeting filters are invalid. */
  | InvalidFlag

export function createSurvey(
  deps: ManageSurveysDeps,
  projectId: number,
  fields: SurveyFields & { readonly name: string; readonly type: Survey['type'] },
  { change, mayReadFlags }: WriterAccess,
): Promise<Result<Survey, SurveyRefusal>> {
  const { targetingFilters, content = {}, linkedFlagId = null, ...others } = fields
  return writeDefinitionWithFlags<Survey, SurveyRefusal>(deps, async () => {
    if (linkedFlagId !== null && !mayReadFlags) return err('flag_not_readable')
    if (linkedFlagId !== null && (await findUndeletedFlag(deps.management, projectId, linkedFlagId)) === null)
      return err('no_such_flag')
    const survey = {
      ...(buildInitialFields(surveyResource) as Pick<Survey, 'startDateMs' | 'endDateMs' | 'archived'>),
      ...others,
      ...{ id: deps.newUuid(), projectId, linkedFlagId, content: addQuestionIds(content, deps.newUuid) },
    }
    if (hasNothingToAsk(survey)) return err('no_questions')
    const flags = await prepareFlagWrites(deps, survey, { targeting: null, internal: null }, targetingFilters)
    if (!flags.ok) return flags
    return deps.management.createResource('survey', survey, flags.value, change)
  })
}

/** @param fieldsOf decides what to write from the stored survey; called again when another write changed the survey. */
export function updateSurvey<E = never>(
  deps: ManageSurveysDeps,
  projectId: number,
  id: string,
  fieldsOf: (current: Survey) => Result<SurveyFields, E>,
  { change, mayReadFlags }: WriterAccess,
): Promise<Result<Survey, SurveyRefusal | E>> {
  return writeDefinitionWithFlags<Survey, SurveyRefusal | E>(deps, async () => {
    const current = await deps.management.findResource('survey', projectId, id)
    if (current === null) return err('not_found')
    const fields = fieldsOf(current)
    if (!fields.ok) return fields
    const { targetingFilters, content, ...others } = fields.value
    const { linkedFlagId } = others
    if (linkedFlagId && linkedFlagId !== current.linkedFlagId && !mayReadFlags) return err('flag_not_readable')
    if (linkedFlagId && (await findUndeletedFlag(deps.management, projectId, linkedFlagId)) === null)
      return err('no_such_flag')
    const patch = {
      ...others,
      ...(content && { content: addQuestionIds(content, deps.newUuid) }),
      ...(targetingFilters === null && { targetingFlagId: null }),
    }
    const survey = patchItem(surveyResource, current, patch)
    if ((others.startDateMs != null || content !== undefined) && hasNothingToAsk(survey)) return err('no_questions')
    const ownFlags = await findSurveyFlags(deps, current)
    const flags = await prepareFlagWrites(deps, survey, ownFlags, targetingFilters)
    if (!flags.ok) return flags
    return deps.management.updateResource('survey', projectId, id, patch, flags.value, change, current)
  })
}

/** Also deletes the survey's own flags; the flag it is linked to stays. */
export function deleteSurvey(
  deps: ManageSurveysDeps,
  projectId: number,
  id: string,
  change: Change,
): Promise<Result<null, SurveyRefusal>> {
  return writeDefinitionWithFlags<null, SurveyRefusal>(deps, async () => {
    const current = await deps.management.findResource('survey', projectId, id)
    if (current === null) return err('not_found')
    const { targeting, internal } = await findSurveyFlags(deps, current)
    const toDeletion = (flag: Flag | null) => (flag === null ? null : toFlagChange(flag, { deleted: true }))
    const flags = { targetingFlagId: toDeletion(targeting), internalTargetingFlagId: toDeletion(internal) }
    return deps.management.deleteResource('survey', projectId, id, flags, change, { basedOn: current })
  })
}

interface OwnFlags {
  readonly targeting: Flag | null
  readonly internal: Flag | null
}

async function findSurveyFlags({ management }: ManageSurveysDeps, survey: Survey): Promise<OwnFlags> {
  const find = (id: number | null) => (id === null ? null : findUndeletedFlag(management, survey.projectId, id))
  const [targeting, internal] = await Promise.all([find(survey.targetingFlagId), find(survey.internalTargetingFlagId)])
  return { targeting, internal }
}

/** @param targetingFilters undefined leaves them unchanged, null removes them. */
async function prepareFlagWrites(
  deps: ManageSurveysDeps,
  survey: Pick<Survey, 'id' | 'projectId' | 'name' | 'content' | 'startDateMs' | 'endDateMs' | 'archived'>,
  own: OwnFlags,
  targetingFilters: JsonObject | null | undefined,
): Promise<Result<FlagWrites<'survey'>, InvalidFlag>> {
  const active = isSurveyRunning(survey)
  // A survey that starts takes its own flags out of the archive.
  const state = active ? { active, archived: false } : { active }
  const keys = buildSurveyFlagKeys(survey.id)
  const prepared = await prepareTargetingWrite()
  if (!prepared.ok) return prepared
  const targeting =
    prepared.value === null
      ? ok(null)
      : await addReferenceCheck(deps.management, survey.projectId, keys.targeting, prepared.value)
  if (!targeting.ok) return targeting
  const internal = await prepareInternalWrite()
  return internal.ok ? ok({ targetingFlagId: targeting.value, internalTargetingFlagId: internal.value }) : internal

  async function prepareTargetingWrite(): Promise<Result<FlagWrite | null, InvalidFlag>> {
    if (targetingFilters === null)
      return ok(own.targeting === null ? null : toFlagChange(own.targeting, { deleted: true }))
    if (targetingFilters !== undefined) {
      const fields = { filters: targetingFilters, ...state }
      return own.targeting === null
        ? prepareNewFlag(keys.targeting, `Targeting flag for survey ${survey.name}`, fields)
        : prepareCheckedChange(deps, own.targeting, fields)
    }
    return ok(toFlagSwitch(own.targeting))
  }

  async function prepareInternalWrite(): Promise<Result<FlagWrite | null, InvalidFlag>> {
    const filters = buildUnansweredSurveyFilters(survey.id, readIteration(survey.content))
    if (own.internal === null)
      return prepareNewFlag(keys.internal, `Targeting flag for survey ${survey.name}`, { filters, ...state })
    const isSame = JSON.stringify(own.internal.filters) === JSON.stringify(filters)
    return ok(isSame ? toFlagSwitch(own.internal) : toFlagChange(own.internal, { filters, ...state }))
  }

  function toFlagSwitch(flag: Flag | null): FlagWrite | null {
    return flag === null || flag.active === active ? null : toFlagChange(flag, state)
  }

  async function prepareNewFlag(
    key: string,
    name: string,
    fields: { readonly filters: JsonObject; readonly active: boolean },
  ): Promise<Result<FlagWrite, InvalidFlag>> {
    const checked = await prepareCheckedNewFlag(deps, survey.projectId, { key, name, ...fields })
    return checked.ok ? ok({ kind: 'create', flag: checked.value }) : checked
  }
}

/** The current iteration of a repeated survey; the browser uses the same number. */
function readIteration(content: JsonObject): number | null {
  const iteration = readJsonNumber(getOwnValue(content, 'current_iteration') ?? null)
  return iteration !== undefined && iteration > 0 ? iteration : null
}

/** A draft needs no questions, as in PostHog, nor does a survey that an app shows by itself. */
function hasNothingToAsk({ type, content, startDateMs }: Pick<Survey, 'type' | 'content' | 'startDateMs'>): boolean {
  if (type === 'api' || startDateMs === null) return false
  const questions = getOwnValue(content, 'questions')
  return !Array.isArray(questions) || questions.length === 0
}

/** Answers name their question by its id, so a question without an id gets one. */
function addQuestionIds(content: JsonObject, newUuid: () => string): JsonObject {
  const questions = getOwnValue(content, 'questions')
  if (!Array.isArray(questions)) return content
  const withId = (question: JsonValue): JsonValue => {
    if (!isJsonObject(question)) return question
    const id = getOwnValue(question, 'id')
    return typeof id === 'string' && id !== '' ? question : mergeObjects(question, { id: newUuid() })
  }
  return mergeObjects(content, { questions: questions.map(withId) })
}
