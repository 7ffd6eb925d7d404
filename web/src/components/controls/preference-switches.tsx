import { useSyncExternalStore } from 'react'
import { readApplied, setPreference, watchPreferences } from '../../looks/theme.ts'
import { Segments } from './radio-group.tsx'

export function ThemeSwitch() {
  const [theme, setTheme] = usePreference('theme')
  return (
    <Segments
      label="Theme"
      choices={[
        { id: 'system', label: 'System', icon: 'monitor' },
        { id: 'light', label: 'Light', icon: 'sun' },
        { id: 'dark', label: 'Dark', icon: 'moon' },
      ]}
      value={theme}
      onChange={setTheme}
    />
  )
}

export function DensitySwitch() {
  const [density, setDensity] = usePreference('density')
  return (
    <Segments
      label="Density"
      choices={[
        { id: 'compact', label: 'Compact' },
        { id: 'normal', label: 'Normal' },
        { id: 'comfortable', label: 'Comfortable' },
      ]}
      value={density}
      onChange={setDensity}
    />
  )
}

/** Another place may change it too, such as a menu or another tab. */
function usePreference<P extends 'theme' | 'density'>(name: P) {
  const choice = useSyncExternalStore(watchPreferences, () => readApplied(name))
  return [choice, (next: typeof choice) => setPreference(name, next)] as const
}
