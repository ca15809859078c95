// The configuration of a site that explains locks.
import {themes as prismThemes} from 'prism-react-renderer';

const config = {
  title: 'Locks and canals',
  url: 'https://locks.example',
  baseUrl: '/handbook/',
  i18n: {defaultLocale: 'en', locales: ['en']},
  presets: [
    ['classic', {
      docs: {
        routeBasePath: 'manual',
        sidebarPath: './sidebars.js',
      },
      blog: {
        showReadingTime: true,
      },
    }],
  ],
};

export default config;
