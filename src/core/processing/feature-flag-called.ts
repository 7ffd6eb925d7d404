// The properties of a `$feature_flag_called` event that are worth storing. Such events are numerous and alike, so only
// these properties are kept, unless the answer was a variant: an analysis of variants may break down by any property.

import { mappedProperties } from '#core/processing/properties/mapped-properties.ts'
import type { JsonObject } from '../json.ts'

const keptPrefixes = ['$feature/', '$initial_', '$session_entry_']
const keptKeys = new Set([
  ...`$feature_flag $feature_flag_response $feature_flag_id $feature_flag_version $feature_flag_reason
    $feature_flag_config_version $feature_flag_reason_code $feature_flag_rule_id $feature_flag_rule_type
    $feature_flag_variant_key $feature_flag_forced_variant $feature_flag_experiment_id $feature_flag_has_experiment
    $feature_flag_request_id $feature_flag_evaluated_at $feature_flag_error $feature_flag_payload
    $feature_flag_definitions_loaded_at $feature_flag_bootstrapped_response $feature_flag_bootstrapped_payload
    $feature_flag_original_response $feature_flag_original_payload locally_evaluated $used_bootstrap_value
    $active_feature_flags $lib $lib_version $set $set_once $unset $groups $group_0 $group_1 $group_2 $group_3 $group_4
    $insert_id $sent_at $device_id $session_id $window_id $is_identified $user_id $anon_distinct_id $host $screen_name $ip
    $geoip_city_name $geoip_subdivision_2_name $geoip_subdivision_2_code $geoip_subdivision_1_name
    $geoip_subdivision_1_code $geoip_country_name $geoip_country_code $geoip_continent_name $geoip_continent_code
    $geoip_postal_code $geoip_latitude $geoip_longitude $geoip_time_zone $device $device_name $device_model
    $device_manufacturer $channel_type $event_type $session_duration $start_timestamp $entry_current_url
    $pageview_id`.split(/\s+/),
  ...mappedProperties.keys(),
])

/** Whether only the properties listed here are stored for the event. Source: docs/wire/ingestion.md 6.9 (3). */
export function isFlagCallStripped(eventName: string, properties: JsonObject): boolean {
  return eventName === '$feature_flag_called' && typeof properties.$feature_flag_response !== 'string'
}

export function isKeptWhenStripped(key: string): boolean {
  return keptKeys.has(key) || keptPrefixes.some(prefix => key.startsWith(prefix))
}
