// What `npm run lint` asks of the TypeScript: typescript-eslint with types, and the rules of JupyterLab's own
// extensions. How the code is laid out is Prettier's business.

import prettier from 'eslint-config-prettier';
import reactHooks from 'eslint-plugin-react-hooks';
import { defineConfig, globalIgnores } from 'eslint/config';
import typescript from 'typescript-eslint';

export default defineConfig(
  globalIgnores(['lib/', 'console/generated/']),
  {
    files: ['**/*.{ts,tsx,mts}'],
    extends: [typescript.configs.recommendedTypeChecked, typescript.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: { project: './tsconfig.test.json', tsconfigRootDir: import.meta.dirname }
    },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      '@typescript-eslint/naming-convention': [
        'error',
        { selector: 'interface', format: ['PascalCase'], custom: { regex: '^I[A-Z]', match: true } }
      ],
      '@typescript-eslint/no-namespace': 'off',
      // an index that is known to be there
      '@typescript-eslint/no-non-null-assertion': 'off',
      // JupyterLab's interfaces ask for promises
      '@typescript-eslint/require-await': 'off',
      // a signal's receiver is handed over beside the method
      '@typescript-eslint/unbound-method': 'off',
      curly: ['error', 'all'],
      eqeqeq: 'error',
      'prefer-arrow-callback': 'error'
    }
  },
  { files: ['console/**', 'lab/**', 'web/**', 'widget/**'], extends: [reactHooks.configs.flat.recommended] },
  {
    files: ['web/**', 'widget/**'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            { regex: '^@(jupyter|jupyterlab|lumino)/|/lab/', message: 'There is no JupyterLab here.' },
            { regex: '^\\.\\./(web|widget)/', message: 'A mount takes nothing from another.' }
          ]
        }
      ]
    }
  },
  {
    // it is mounted in places where JupyterLab is not
    files: ['console/**'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            { regex: '^@(jupyter|jupyterlab|lumino)/|/lab/', message: 'What the console needs of it is in `Host`.' }
          ]
        }
      ]
    }
  },
  prettier
);
