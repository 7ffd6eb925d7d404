// Other settings of PostHog's project API, for screens and reports. Tools that manage projects write them and read them
// back, so they are kept along with the settings for clients. Insights use `week_start_day`, and nothing uses the
// others. Settings that promise something that Pennon does not do are refused, unless they are off
// (`posthog-fields.ts`). Source: PostHog's project API.

import Type, { type TSchema } from 'typebox'
import type { JsonValue } from '#core/json.ts'
import { jsonObjectSchema, nullable } from './shapes.ts'

const onOff = () => nullable(Type.Boolean())
const textSchema = (maxLength: number) => nullable(Type.String({ maxLength }))
const textsSchema = (maxLength: number) => nullable(Type.Array(Type.String({ maxLength }), { maxItems: 200 }))
const objectsSchema = () => nullable(Type.Array(jsonObjectSchema(), { maxItems: 200 }))
const objectSchema = () => nullable(jsonObjectSchema())

/** Each may be null, which means not set. */
export const keptSettingsFields = {
  app_urls: nullable(
    Type.Array(nullable(Type.String({ maxLength: 200 })), {
      maxItems: 200,
      description: "URLs of the project's own sites.",
    }),
  ),
  test_account_filters: objectsSchema(),
  test_account_filters_default_checked: onOff(),
  path_cleaning_filters: objectsSchema(),
  data_attributes: textsSchema(200),
  person_display_name_properties: textsSchema(400),
  live_events_columns: textsSchema(400),
  correlation_config: objectSchema(),
  autocapture_exceptions_errors_to_ignore: textsSchema(1_000),
  logs_settings: objectSchema(),
  extra_settings: objectSchema(),
  session_recording_trigger_groups: objectSchema(),
  week_start_day: nullable(
    Type.Integer({
      minimum: 0,
      maximum: 1,
      description: 'First day of the week in insights: 0 is Sunday (default), 1 is Monday.',
    }),
  ),
  human_friendly_comparison_periods: onOff(),
  inject_web_apps: onOff(),
  is_demo: onOff(),
  completed_snippet_onboarding: onOff(),
  has_completed_onboarding_for: objectSchema(),
  onboarding_tasks: objectSchema(),
  feature_flag_confirmation_enabled: onOff(),
  feature_flag_confirmation_message: textSchema(10_000),
  business_model: nullable(Type.Union([Type.Literal('b2b'), Type.Literal('b2c'), Type.Literal('other')])),
  base_currency: textSchema(3),
  product_description: textSchema(1_000),
} satisfies Record<string, TSchema>

/** The values that an answer shows in place of null. */
export const keptSettingsDefaults: Readonly<Partial<Record<keyof typeof keptSettingsFields, JsonValue>>> = {
  app_urls: [],
  test_account_filters: [],
  path_cleaning_filters: [],
  data_attributes: ['data-attr'],
  human_friendly_comparison_periods: false,
  is_demo: false,
  completed_snippet_onboarding: false,
  feature_flag_confirmation_enabled: false,
  base_currency: 'USD',
}
