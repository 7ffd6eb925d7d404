// A project's settings for its clients, and settings that are only kept, under the names of PostHog's project API. They are
// stored as sent; a setting that was never set, or is null, has its default. Source: docs/wire/evaluation.md 2.5.

import { type JsonSchema, type Member, orNull } from './resource.ts'

const onOffSetting = (description?: string) => ({
  schema: orNull({ type: 'boolean', ...describeIfGiven(description) }),
})
const textSetting = (maxLength: number) => ({ schema: orNull({ type: 'string', maxLength }) })
const listSetting = (items: JsonSchema, maxItems: number, description?: string) => ({
  schema: orNull({ type: 'array', items, maxItems, ...describeIfGiven(description) }),
})
/** @param names the setting's members that have an effect; misspelt members in a body are refused. */
const objectSetting = (description?: string, names: readonly string[] = []) => ({
  schema: orNull({
    ...{ type: 'object', ...describeIfGiven(description) },
    ...(names.length > 0 && { properties: Object.fromEntries(names.map(name => [name, {}])) }),
  }),
})
const choiceSetting = (values: readonly string[]) => ({
  schema: orNull({ anyOf: values.map(value => ({ type: 'string', const: value })) }),
})
const describeIfGiven = (description?: string) => description !== undefined && { description }

const someText = (maxLength: number) => ({ type: 'string', minLength: 1, maxLength })
const anyText = (maxLength: number) => ({ type: 'string', maxLength })
const pattern = {
  ...{ type: 'object', required: ['url', 'matching'] },
  properties: { url: someText(2_000), matching: { type: 'string', const: 'regex' } },
}
const urlTriggers = listSetting(pattern, 100, 'URL patterns, matched by the browser.')

/**
 * Settings for screens and reports of PostHog. Tools that manage projects write them and read them back, so they are kept.
 * Insights use `week_start_day`; nothing uses the rest. Settings that promise something Pennon does not do are refused,
 * unless they are off (`wire/management/posthog-fields.ts`). Source: PostHog's project API.
 */
export const keptSettings = {
  app_urls: {
    ...listSetting(orNull(anyText(200)), 200, "URLs of the project's own sites."),
    shown: [],
  },
  test_account_filters: { ...listSetting({ type: 'object' }, 200), shown: [] },
  test_account_filters_default_checked: onOffSetting(),
  path_cleaning_filters: { ...listSetting({ type: 'object' }, 200), shown: [] },
  data_attributes: { ...listSetting(anyText(200), 200), shown: ['data-attr'] },
  person_display_name_properties: listSetting(anyText(400), 200),
  live_events_columns: listSetting(anyText(400), 200),
  correlation_config: objectSetting(),
  autocapture_exceptions_errors_to_ignore: listSetting(anyText(1_000), 200),
  logs_settings: objectSetting(),
  extra_settings: objectSetting(),
  session_recording_trigger_groups: objectSetting(),
  week_start_day: {
    schema: orNull({
      ...{ type: 'integer', minimum: 0, maximum: 1 },
      description: 'First day of the week in insights: 0 is Sunday (default), 1 is Monday.',
    }),
  },
  human_friendly_comparison_periods: { ...onOffSetting(), shown: false },
  inject_web_apps: onOffSetting(),
  is_demo: { ...onOffSetting(), shown: false },
  completed_snippet_onboarding: { ...onOffSetting(), shown: false },
  has_completed_onboarding_for: objectSetting(),
  onboarding_tasks: objectSetting(),
  feature_flag_confirmation_enabled: { ...onOffSetting(), shown: false },
  feature_flag_confirmation_message: textSetting(10_000),
  business_model: choiceSetting(['b2b', 'b2c', 'other']),
  base_currency: { ...textSetting(3), shown: 'USD' },
  product_description: textSetting(1_000),
} satisfies Record<string, Member>

/** `wire/browser/client-config.ts` turns these settings, except those that are only kept, into what clients read. */
export const clientSettings = {
  autocapture_opt_out: onOffSetting('Browsers do not send `$autocapture`.'),
  autocapture_exceptions_opt_in: onOffSetting(),
  autocapture_web_vitals_opt_in: onOffSetting(),
  autocapture_web_vitals_allowed_metrics: listSetting(someText(20), 20),
  capture_performance_opt_in: onOffSetting('Record network timing.'),
  capture_console_log_opt_in: onOffSetting('Record console output.'),
  capture_dead_clicks: onOffSetting(),
  heatmaps_opt_in: onOffSetting(),
  surveys_opt_in: onOffSetting('false hides all surveys; otherwise running surveys are shown.'),
  survey_config: objectSetting('Default `appearance` of surveys, and other settings.'),
  session_recording_opt_in: { ...onOffSetting(), shown: false },
  session_recording_sample_rate: {
    schema: orNull({
      description: 'Share of sessions to record, 0 to 1, as a number or decimal text; stored with two decimal places.',
    }),
  },
  session_recording_minimum_duration_milliseconds: {
    schema: orNull({ type: 'integer', minimum: 0, maximum: 30_000 }),
  },
  session_recording_linked_flag: objectSetting('`{key, variant?}`: record only users for whom this flag is on.', [
    ...['id', 'key', 'variant'],
  ]),
  session_recording_network_payload_capture_config: objectSetting('Of requests.', ['recordBody', 'recordHeaders']),
  session_recording_masking_config: objectSetting('Of pages.', ['maskAllInputs', 'maskTextSelector', 'blockSelector']),
  session_recording_url_trigger_config: urlTriggers,
  session_recording_url_blocklist_config: urlTriggers,
  session_recording_event_trigger_config: listSetting(someText(200), 100),
  session_recording_trigger_match_type_config: choiceSetting(['all', 'any']),
  session_replay_config: objectSetting('Of canvases.', ['record_canvas']),
  recording_domains: listSetting(someText(500), 200, 'Record only pages on these hosts; `*` matches any text.'),
  flags_persistence_default: onOffSetting(),
  minimal_flag_called_events: { ...onOffSetting('SDKs send smaller `$feature_flag_called` events.'), shown: false },
  ...keptSettings,
} satisfies Record<string, Member>

export type ClientSettingName = keyof typeof clientSettings
