// A project's configuration for its clients, apart from flags: the members that `/decide`, `/flags` and remote config
// share. Encoded once per compiled project, and once more for the time that its recording quota is used up; only whether a
// page may be recorded is decided per request. Source: docs/wire/evaluation.md 2.5; docs/wire/clients.md 10.3.

import type { CompiledProject } from '#core/flags/evaluation/compile-project.ts'
import { getOwnValue, isJsonObject, type JsonObject, type JsonValue } from '#core/json.ts'
import type { Project } from '#core/project.ts'
import { isRecordedPage, type PageHeaders, parseRecordingHost } from '#core/recording-domains.ts'
import { encodeSurveys } from './surveys.ts'

export interface ClientConfig {
  /** JSON members, without a comma at either end, for pages that are recorded if the project records at all. */
  readonly members: string
  /** The same members for pages that are not recorded. */
  readonly membersUnrecorded: string
  /** Hosts whose pages are recorded; empty when all are. */
  readonly recordingHosts: readonly string[]
  /** Whether nothing is recorded because the project's quota of recordings is used up. */
  readonly isOverRecordingQuota: boolean
  /** Makes SDKs send leaner flag-called events. */
  readonly minimalFlagCalledEvents: boolean
  /** Only `/decide` returns it; null when it is not set. */
  readonly flagsPersistenceDefault: boolean | null
  /** JSON list of all surveys, for `/api/surveys/`. */
  readonly allSurveys: string
  /** JSON of the survey setting; null when it is not set. */
  readonly surveyConfig: string | null
}

const known = new WeakMap<CompiledProject, ClientConfig>()
const knownOverQuota = new WeakMap<CompiledProject, ClientConfig>()

/** @param isOverRecordingQuota when absent, the quota is never used up. */
export function clientConfigOf(
  project: CompiledProject,
  isOverRecordingQuota?: (project: Project) => boolean,
): ClientConfig {
  const isOver = isOverRecordingQuota?.(project.project) === true
  const configs = isOver ? knownOverQuota : known
  let config = configs.get(project)
  if (config === undefined) {
    config = prepareClientConfig(project, isOver)
    configs.set(project, config)
  }
  return config
}

/** Whether this page gets the members for recorded pages. */
export function isPageRecorded(config: ClientConfig, page: PageHeaders): boolean {
  return config.members === config.membersUnrecorded || isRecordedPage(config.recordingHosts, page)
}

export function chooseConfigMembers(config: ClientConfig, page: PageHeaders): string {
  return isPageRecorded(config, page) ? config.members : config.membersUnrecorded
}

export function hasMinimalFlagCalledEvents(clientSettings: JsonObject): boolean {
  return isSettingTrue(clientSettings, 'minimal_flag_called_events')
}

function prepareClientConfig({ project, definitions }: CompiledProject, isOverQuota: boolean): ClientConfig {
  const settings = project.clientSettings
  const isRecording = isSettingTrue(settings, 'session_recording_opt_in')
  const isOverRecordingQuota = isRecording && isOverQuota
  const surveys = encodeSurveys(definitions)
  const surveyConfig = readClientSetting(settings, 'survey_config')
  const surveyConfigText = surveyConfig === null ? null : JSON.stringify(surveyConfig)
  const running = readClientSetting(settings, 'surveys_opt_in') === false ? null : surveys.running
  const parts = { settings, surveys: running, surveyConfig: surveyConfigText }
  const recording = isRecording && !isOverRecordingQuota ? JSON.stringify(buildSessionRecording(settings)) : 'false'
  const persistence = readClientSetting(settings, 'flags_persistence_default')
  return {
    members: encodeMembers({ ...parts, recording }),
    membersUnrecorded: encodeMembers({ ...parts, recording: 'false' }),
    recordingHosts: listRecordingHosts(settings),
    isOverRecordingQuota,
    minimalFlagCalledEvents: hasMinimalFlagCalledEvents(settings),
    flagsPersistenceDefault: typeof persistence === 'boolean' ? persistence : null,
    allSurveys: surveys.all,
    surveyConfig: surveyConfigText,
  }
}

/** `autocapture_opt_out` is always included, because a browser keeps the last value it saw. */
function encodeMembers(parts: {
  readonly settings: JsonObject
  readonly recording: string
  readonly surveys: string | null
  readonly surveyConfig: string | null
}): string {
  const { settings, recording, surveys, surveyConfig } = parts
  const exceptions = isSettingTrue(settings, 'autocapture_exceptions_opt_in')
  return [
    `"sessionRecording":${recording}`,
    `"surveys":${surveys ?? false}`,
    ...(surveyConfig === null ? [] : [`"survey_config":${surveyConfig}`]),
    `"heatmaps":${isSettingTrue(settings, 'heatmaps_opt_in')}`,
    `"capturePerformance":${encodeCapturePerformance(settings)}`,
    `"autocaptureExceptions":${exceptions}`,
    `"autocapture_opt_out":${isSettingTrue(settings, 'autocapture_opt_out')}`,
    `"captureDeadClicks":${isSettingTrue(settings, 'capture_dead_clicks')}`,
    '"analytics":{"endpoint":"/i/v0/e/"}',
    '"elementsChainAsString":true',
    `"errorTracking":{"autocaptureExceptions":${exceptions},"suppressionRules":[]}`,
    '"defaultIdentifiedOnly":true',
    '"siteApps":[]',
  ].join(',')
}

/** The configuration for an unknown key: everything that can be off is off. */
export const offMembers = encodeMembers({ settings: {}, recording: 'false', surveys: null, surveyConfig: null })

function encodeCapturePerformance(settings: JsonObject): string {
  const networkTiming = isSettingTrue(settings, 'capture_performance_opt_in')
  const webVitals = isSettingTrue(settings, 'autocapture_web_vitals_opt_in')
  if (!networkTiming && !webVitals) return 'false'
  return JSON.stringify({
    network_timing: networkTiming,
    web_vitals: webVitals,
    web_vitals_allowed_metrics: readClientSetting(settings, 'autocapture_web_vitals_allowed_metrics'),
  })
}

/** Leaves out the list of domains: the server checks it, and clients do not see it. */
function buildSessionRecording(settings: JsonObject): JsonObject {
  const settingOf = (name: string) => readClientSetting(settings, `session_recording_${name}`)
  const rate = settingOf('sample_rate')
  const replay = readClientSetting(settings, 'session_replay_config')
  const recordsCanvas = isJsonObject(replay) && getOwnValue(replay, 'record_canvas') === true
  return {
    endpoint: '/s/',
    consoleLogRecordingEnabled: isSettingTrue(settings, 'capture_console_log_opt_in'),
    recorderVersion: 'v2',
    sampleRate: rate === '1.00' ? null : rate,
    minimumDurationMilliseconds: settingOf('minimum_duration_milliseconds') || null,
    linkedFlag: toLinkedFlag(settingOf('linked_flag')),
    networkPayloadCapture: settingOf('network_payload_capture_config'),
    masking: settingOf('masking_config'),
    urlTriggers: settingOf('url_trigger_config') ?? [],
    urlBlocklist: settingOf('url_blocklist_config') ?? [],
    eventTriggers: settingOf('event_trigger_config') ?? [],
    triggerMatchType: settingOf('trigger_match_type_config'),
    scriptConfig: null,
    ...(recordsCanvas ? { recordCanvas: true, canvasFps: 3, canvasQuality: '0.4' } : {}),
  }
}

function toLinkedFlag(value: JsonValue): JsonValue {
  if (!isJsonObject(value)) return null
  const key = getOwnValue(value, 'key') ?? null
  const variant = getOwnValue(value, 'variant') ?? null
  return variant === null ? key : { flag: key, variant }
}

function listRecordingHosts(settings: JsonObject): string[] {
  const domains = readClientSetting(settings, 'recording_domains')
  if (!Array.isArray(domains)) return []
  return domains.map(domain => parseRecordingHost(String(domain))).filter(host => host !== null)
}

function isSettingTrue(settings: JsonObject, name: string): boolean {
  return readClientSetting(settings, name) === true
}

function readClientSetting(settings: JsonObject, name: string): JsonValue {
  return getOwnValue(settings, name) ?? null
}
