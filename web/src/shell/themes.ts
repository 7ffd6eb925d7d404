import type { IconName } from '../components/icon-names.ts'
import { setPreference } from '../looks/theme.ts'

export const themeChoices = [
  { id: 'system', label: 'Theme of the system', icon: 'monitor' },
  { id: 'light', label: 'Light theme', icon: 'sun' },
  { id: 'dark', label: 'Dark theme', icon: 'moon' },
] as const satisfies readonly { id: string; label: string; icon: IconName }[]

export function chooseTheme(id: (typeof themeChoices)[number]['id']): void {
  setPreference('theme', id)
}
