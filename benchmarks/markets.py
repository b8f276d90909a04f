"""The five markets of the EPF benchmark (Lago et al. 2021), and the two columns of each that are known a day ahead."""

KNOWN = {
    "NP": "load_forecast,wind_forecast",
    "PJM": "system_load_forecast,zonal_load_forecast",
    "BE": "generation_forecast_fr,load_forecast_fr",
    "FR": "generation_forecast,load_forecast",
    "DE": "load_forecast_amprion,wind_pv_forecast",
}
